import { AppError } from '#lib/errors.ts'
import { AudioError } from '#speech/decoders/decoder.ts'
import { EngineError, type Language } from '#speech/engine.ts'
import type { RecognitionFailure } from '#speech/recognition/recognition.ts'

/** When a client may retry after a capacity limit. */
const capacityRetryS = 1

export const messages = {
  noFile: 'Send the audio as a file in the field "file".',
  oneFile: 'Send one file, in the field "file".',
  noAudio: 'The file contains no audio.',
  engine_busy: 'All speech engines are busy; retry.',
  capacity: 'The server has no capacity for another file; retry.',
  engine_failed: 'No speech engine is available for this file.',
  engine_stalled: 'The speech engine made no progress for too long.',
  finalize_timeout: 'The last results of the speech engine did not arrive in time.',
  tooManyFiles: (filesMax: number) => `A user may transcribe ${filesMax} files at once.`,
  unknownModel: (model: string) => `The model "${model}" does not exist.`,
  unsupportedLanguage: (languages: readonly Language[]) =>
    `This language is not supported; use one of ${languages.join(', ')}.`,
  unsupportedFormat: (format: string) =>
    `The file format ${format}. Send WAV, MP3, or Opus in Ogg or WebM.`,
  fileTooLarge: (bytesMax: number) => `A file may have at most ${bytesMax} bytes.`,
  timeout: (fileMs: number) => `The file was not transcribed within ${fileMs} ms.`,
  audioLost: (startMs: number, endMs: number) =>
    `Speech from ${startMs / 1000} s to ${endMs / 1000} s was lost in an engine failure. With response_format=verbose_json the rest is returned with the missing spans.`,
}

/** A field of the form is invalid. */
export function invalidField(param: string, message: string, code?: string): AppError {
  return new AppError('invalid_request', message, code === undefined ? { param } : { param, code })
}

export function fileTooLarge(bytesMax: number): AppError {
  const details = { code: 'file_too_large', param: 'file' }
  return new AppError('request_too_large', messages.fileTooLarge(bytesMax), details)
}

export function atCapacity(code: 'engine_busy' | 'capacity'): AppError {
  return new AppError('service_unavailable', messages[code], { code, retryAfterS: capacityRetryS })
}

export function tooManyFiles(filesMax: number): AppError {
  const message = messages.tooManyFiles(filesMax)
  return new AppError('rate_limit_exceeded', message, { retryAfterS: capacityRetryS })
}

export function clientDisconnected(cause?: unknown): AppError {
  return new AppError('client_closed', 'The client disconnected.', { cause })
}

/** An incomplete transcript must not be mistaken for a complete one. */
export function audioLost(startMs: number, endMs: number): AppError {
  return new AppError('upstream_error', messages.audioLost(startMs, endMs), { code: 'audio_lost' })
}

export function recognitionFailed(code: RecognitionFailure): AppError {
  const kind = code === 'engine_failed' ? 'upstream_error' : 'upstream_gap_timeout'
  return new AppError(kind, messages[code], { code })
}

/** The warning of a transcript that a deadline has cut short. */
export function incompleteWarning(deadline: AppError, receivedMs: number) {
  const seconds = Math.round(receivedMs) / 1000
  return {
    code: deadline.wireCode,
    message: `${deadline.message} The transcript is incomplete: ${seconds} s of the audio were processed.`,
  }
}

/** Errors of decoders and engines; an engine's message is not public, because it quotes addresses. */
export function toFileError(error: unknown): unknown {
  if (error instanceof AudioError) {
    const options = { code: error.code, param: 'file', cause: error }
    return new AppError('invalid_request', error.message, options)
  }
  if (!(error instanceof EngineError)) return error
  if (error.kind === 'busy') return atCapacity('engine_busy')
  const options = { code: 'engine_failed', cause: error }
  return new AppError('upstream_error', messages.engine_failed, options)
}
