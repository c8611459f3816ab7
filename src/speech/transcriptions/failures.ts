import { AppError } from '#lib/errors.ts'
import { AudioError } from '#speech/decoders/decoder.ts'
import type { Language } from '#speech/engine.ts'
import { EngineError } from '#speech/engine.ts'
import type { RecognitionFailure } from '#speech/recognition/recognition.ts'

/** What goes wrong with a transcription, as its caller is told. */

/** After how long a caller may try again where all places are taken. */
const capacityRetryS = 1

export function noPlace(): AppError {
  const sentence = 'All speech engines are busy; try again.'
  return new AppError('service_unavailable', sentence, {
    code: 'engine_busy',
    retryAfterS: capacityRetryS,
  })
}

export function tooManyFiles(): AppError {
  return new AppError('service_unavailable', 'There is no room for another file; try again.', {
    code: 'capacity',
    retryAfterS: capacityRetryS,
  })
}

export function tooManyFilesOfCaller(filesMax: number): AppError {
  const sentence = `One caller may have ${filesMax} files transcribed at once.`
  return new AppError('rate_limit_exceeded', sentence, { retryAfterS: capacityRetryS })
}

export function unknownModel(model: string): AppError {
  return new AppError('model_not_found', `The model "${model}" does not exist.`, {
    param: 'model',
  })
}

export function unsupportedLanguage(served: readonly Language[]): AppError {
  const sentence = `This language is not supported; there are ${served.join(', ')}.`
  return new AppError('invalid_request', sentence, {
    code: 'unsupported_language',
    param: 'language',
  })
}

export function tookTooLong(fileMs: number): AppError {
  return new AppError('upstream_total_timeout', `The file was not done within ${fileMs} ms.`, {
    code: 'transcription_timeout',
  })
}

export function callerGone(cause?: unknown): AppError {
  return new AppError('client_closed', 'The client went away.', { cause })
}

export function noAudio(): AppError {
  return new AppError('invalid_request', 'There is no audio in the file.', {
    code: 'bad_audio',
    param: 'file',
  })
}

/** What is left may not pass for the whole. */
export function audioLost(startMs: number, endMs: number): AppError {
  const span = `from ${startMs / 1000} s to ${endMs / 1000} s`
  const sentence = `The speech ${span} was lost with its engine. With response_format=verbose_json the rest is told, and what is missing.`
  return new AppError('upstream_error', sentence, { code: 'audio_lost' })
}

const recognitionFailures = {
  engine_failed: { kind: 'upstream_error', sentence: 'No speech engine can do this file now.' },
  engine_stalled: {
    kind: 'upstream_gap_timeout',
    sentence: 'The speech engine made no progress for too long.',
  },
  finalize_timeout: {
    kind: 'upstream_gap_timeout',
    sentence: 'The last results of the speech engine did not come in time.',
  },
} as const satisfies Record<RecognitionFailure, unknown>

export function recognitionFailed(code: RecognitionFailure): AppError {
  const { kind, sentence } = recognitionFailures[code]
  return new AppError(kind, sentence, { code })
}

/** What a decoder or an engine threw; of an engine the kind alone is told, since it quotes addresses. */
export function asFailure(error: unknown): unknown {
  if (error instanceof AudioError) {
    const details = { code: error.code, param: 'file', cause: error }
    return new AppError('invalid_request', error.message, details)
  }
  if (!(error instanceof EngineError)) return error
  if (error.kind === 'busy') return noPlace()
  const { sentence } = recognitionFailures.engine_failed
  return new AppError('upstream_error', sentence, { code: 'engine_failed', cause: error })
}
