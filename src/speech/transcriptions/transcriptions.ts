import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '#config/schema.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { EnginePool } from '#speech/engines/pool.ts'
import type { RecognitionStats } from '#speech/recognition/recognition.ts'
import { removeUnfinished } from '#storage/spool.ts'
import type { Log } from '#telemetry/log.ts'
import { createAdmission } from './admission.ts'
import { asFailure, callerGone, noPlace, tookTooLong } from './failures.ts'
import { encodingOfFile } from './file-encoding.ts'
import type { TranscriptionRequest } from './read-request.ts'
import { resolveEngine } from './resolve-engine.ts'
import { type SpooledAudio, spoolAudio } from './spooled-audio.ts'
import {
  type FileJob,
  type FileParts,
  type OpenRecognition,
  transcribeFile,
} from './transcribe-file.ts'

/** Files that callers have made text of, in this process. */
export type Transcriptions = {
  /** At the door, before anything of the file came; throws where there is no room for it. */
  receive(caller: TranscriptionCaller): Receipt
  /** Those that are going on. */
  running(): number
}

type TranscriptionCaller = {
  readonly userId: string
  readonly requestId: string
  readonly signal: AbortSignal
}

/** One file, from its first byte to the end of its answer. */
export type Receipt = {
  /** Keeps the file; throws `request_too_large` past `fileBytesMax`. */
  take(filename: string | null, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /**
   * The file made text of. Whoever begins it takes it to its end or returns it: then, and when it
   * throws, everything is given back. It throws `AppError`s.
   */
  begin(request: TranscriptionRequest): FileParts
  /** Nobody waits for it any more. */
  abandon(): void
  /** Gives everything back; harmless when called twice, and after the end of what was begun. */
  close(): Promise<void>
}

export type TranscriptionsDeps = {
  readonly config: Pick<Config, 'data' | 'speech'>
  readonly pool: EnginePool
  readonly openRecognition: OpenRecognition
  readonly log: Log
  readonly now: () => Date
}

export async function createTranscriptions(deps: TranscriptionsDeps): Promise<Transcriptions> {
  const { config, pool } = deps
  const folder = join(config.data, 'speech')
  await mkdir(folder, { recursive: true })
  await removeUnfinished(folder, deps.now())
  const admission = createAdmission(config.speech)
  const hasAnyPlace = () =>
    pool.languages.some((language) => pool.hasCapacity({ language, engineName: null, avoid: null }))
  return {
    receive(caller) {
      if (!hasAnyPlace()) throw noPlace()
      return openReceipt({ ...deps, folder }, caller, admission.enter(caller.userId))
    },
    running: admission.running,
  }
}

function openReceipt(
  deps: TranscriptionsDeps & { folder: string },
  caller: TranscriptionCaller,
  leave: () => void,
): Receipt {
  const { fileBytesMax, fileMs, models } = deps.config.speech
  const { controller, release } = followSignal(caller.signal)
  const timer = setTimeout(() => controller.abort(tookTooLong(fileMs)), fileMs)
  let audio: SpooledAudio | null = null
  let isClosed = false

  async function close(): Promise<void> {
    if (isClosed) return
    isClosed = true
    clearTimeout(timer)
    release()
    leave()
    await audio?.close()
  }

  function jobOf(audio: SpooledAudio, request: TranscriptionRequest): FileJob {
    const choice = resolveEngine(request, { pool: deps.pool, models })
    const encoding = encodingOfFile(audio.head, audio.filename)
    if (!deps.pool.hasCapacity(choice)) throw noPlace()
    return {
      audio,
      encoding,
      language: choice.language,
      engineName: choice.engineName,
      vocabulary: request.vocabulary,
      maySkip: request.form === 'verbose_json',
      signal: controller.signal,
    }
  }

  async function* run(audio: SpooledAudio, request: TranscriptionRequest): FileParts {
    const startedAt = performance.now()
    let outcome: Outcome = { stats: null, failure: callerGone() }
    try {
      for await (const part of transcribeFile(deps.openRecognition, jobOf(audio, request))) {
        if (part.type === 'end') outcome = { stats: part.stats, failure: null }
        yield part
      }
    } catch (error) {
      const failure = toAppError(asFailure(error))
      outcome = { stats: null, failure }
      throw failure
    } finally {
      await close()
      logEnd(deps.log, { caller, request, audio, outcome, ms: performance.now() - startedAt })
    }
  }

  return {
    async take(filename, bytes) {
      audio = await spoolAudio(bytes, {
        folder: deps.folder,
        filename,
        bytesMax: fileBytesMax,
      })
      if (isClosed) await audio.close()
    },
    begin(request) {
      if (audio === null) {
        throw new AppError('invalid_request', 'Send the audio as a file in the field "file".', {
          param: 'file',
        })
      }
      return run(audio, request)
    },
    abandon: () => controller.abort(callerGone()),
    close,
  }
}

type Outcome = { readonly stats: RecognitionStats | null; readonly failure: AppError | null }

function logEnd(
  log: Log,
  end: {
    caller: TranscriptionCaller
    request: TranscriptionRequest
    audio: SpooledAudio
    outcome: Outcome
    ms: number
  },
): void {
  const { stats, failure } = end.outcome
  log[failure !== null && failure.status >= 500 ? 'warn' : 'info']('transcription ended', {
    request_id: end.caller.requestId,
    model: end.request.model,
    lang: end.request.language,
    bytes: end.audio.bytes,
    duration_ms: Math.round(end.ms),
    ...(failure === null
      ? {}
      : { kind: failure.kind, code: failure.wireCode, cause: failure.cause }),
    ...(stats === null
      ? {}
      : {
          audio_ms: stats.receivedMs,
          untranscribed_ms: stats.untranscribedMs,
          engine: stats.engine,
        }),
  })
}
