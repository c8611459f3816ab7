import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '#config/schema.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { RequestContext, RequestPrincipal } from '#lib/request-context.ts'
import type { AdmitSpeech, SpeechReservation } from '#limits/speech.ts'
import { isLanguage } from '#speech/engine.ts'
import type { EngineChoice, EnginePool } from '#speech/engines/pool.ts'
import type { OpenRecognition, RecognitionStats } from '#speech/recognition/recognition.ts'
import { removeUnfinished } from '#storage/spool.ts'
import type { Log } from '#telemetry/log.ts'
import type { SpeechUse } from '#usage/record.ts'
import {
  atCapacity,
  clientDisconnected,
  invalidField,
  messages,
  toFileError,
  tooManyFiles,
} from './errors.ts'
import type { TranscriptionRequest } from './request.ts'
import {
  detectEncoding,
  type FileJob,
  type FileParts,
  type SpooledAudio,
  spoolAudio,
  transcribeFile,
} from './transcribe-file.ts'

/** File transcriptions in this process. */
export type Transcriptions = Awaited<ReturnType<typeof createTranscriptions>>

export type TranscriptionsDeps = {
  readonly config: Pick<Config, 'data' | 'speech'>
  readonly pool: EnginePool
  readonly openRecognition: OpenRecognition
  /** Whether a principal may name a model, if it exists. */
  readonly mayUseModel: (principal: RequestPrincipal, name: string) => boolean
  readonly log: Log
  readonly now: () => Date
  /** Limits of callers; absent: none. */
  readonly admit?: AdmitSpeech | undefined
  /** Called once for each file whose transcription ends. */
  readonly onUsed?: ((use: SpeechUse) => void) | undefined
}

export async function createTranscriptions(deps: TranscriptionsDeps) {
  const { config, pool } = deps
  const { sessionsMax, sessionsPerUserMax } = config.speech
  const folder = join(config.data, 'speech')
  await mkdir(folder, { recursive: true })
  await removeUnfinished(folder, deps.now())
  const runningByUser = new Map<string, number>()
  let running = 0

  /** Returns a function that releases the capacity once. */
  function takeCapacity(userId: string): () => void {
    const runningOfUser = runningByUser.get(userId) ?? 0
    if (runningOfUser >= sessionsPerUserMax) throw tooManyFiles(sessionsPerUserMax)
    if (running >= sessionsMax) throw atCapacity('capacity')
    running += 1
    runningByUser.set(userId, runningOfUser + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      running -= 1
      const rest = (runningByUser.get(userId) ?? 1) - 1
      if (rest === 0) runningByUser.delete(userId)
      else runningByUser.set(userId, rest)
    }
  }

  return {
    /** Admits an upload before its first byte; rejects at capacity, or by a limit of the caller. */
    async admit(context: RequestContext): Promise<Upload> {
      const hasCapacity = pool.languages.some((language) =>
        pool.hasCapacity({ language, engineName: null, avoid: null }),
      )
      if (!hasCapacity) throw atCapacity('engine_busy')
      const releaseCapacity = takeCapacity(context.principal.userId)
      try {
        const reservation = (await deps.admit?.(context.principal, 'file')) ?? null
        return openUpload(deps, folder, context, { releaseCapacity, reservation })
      } catch (error) {
        releaseCapacity()
        throw error
      }
    },
    /** Transcriptions in progress. */
    running: () => running,
  }
}

/** What an upload holds until it is closed. */
type Held = {
  readonly releaseCapacity: () => void
  readonly reservation: SpeechReservation | null
}

/** One file, from its first byte to the end of the response. */
export type Upload = ReturnType<typeof openUpload>

function openUpload(
  deps: TranscriptionsDeps,
  folder: string,
  context: RequestContext,
  { releaseCapacity, reservation }: Held,
) {
  const { fileBytesMax, fileMs } = deps.config.speech
  const { controller, release } = followSignal(context.signal)
  const timeout = () =>
    new AppError('upstream_total_timeout', messages.timeout(fileMs), {
      code: 'transcription_timeout',
    })
  const timer = setTimeout(() => controller.abort(timeout()), fileMs)
  let audio: SpooledAudio | null = null
  let isClosed = false
  let audioMs = 0

  /** Releases all resources; idempotent. */
  async function close(): Promise<void> {
    if (isClosed) return
    isClosed = true
    clearTimeout(timer)
    release()
    releaseCapacity()
    reservation?.settle(audioMs)
    await audio?.close()
  }

  async function* run(audio: SpooledAudio, request: TranscriptionRequest): FileParts {
    const startedAt = performance.now()
    context.exchange?.workStarted()
    const span = context.trace?.span?.startChild('transcription', {
      attributes: {
        'gen_ai.operation.name': 'transcribe',
        'gen_ai.request.model': request.model,
        'sluice.speech.language': request.language,
      },
    })
    let stats: RecognitionStats | null = null
    let failure: AppError | null = clientDisconnected()
    try {
      const { model } = request
      if (!deps.mayUseModel(context.principal, model)) throw unknownModel(model)
      const job = createJob(deps, audio, request, controller.signal)
      for await (const part of transcribeFile(deps.openRecognition, job)) {
        if (part.type === 'end') {
          stats = part.stats
          audioMs = stats.receivedMs
          failure = part.incomplete
        }
        yield part
      }
    } catch (error) {
      stats = null
      failure = toAppError(toFileError(error))
      throw failure
    } finally {
      await close()
      const endedAtMs = performance.now()
      const durationMs = endedAtMs - startedAt
      deps.onUsed?.({
        kind: 'transcription',
        requestId: context.requestId,
        userId: context.principal.userId,
        keyId: context.keyId,
        requestedModel: request.model,
        engine: stats?.engine.name ?? null,
        outcome: outcomeOf(failure),
        errorKind: failure?.kind ?? null,
        audioMs: stats?.receivedMs ?? 0,
        durationMs,
        endedAtMs,
      })
      span?.set({
        'sluice.speech.engine': stats?.engine.name,
        'sluice.speech.audio_ms': stats?.receivedMs,
        'sluice.speech.untranscribed_ms': stats?.untranscribedMs,
      })
      if (failure !== null) span?.fail(failure.kind, failure.message)
      span?.end(endedAtMs)
      context.exchange?.workEnded({
        model: request.model,
        lang: request.language,
        audio_bytes: audio.bytes,
        transcription_ms: Math.round(durationMs),
        ...(failure && { kind: failure.kind, code: failure.wireCode, cause: failure.cause }),
        ...(stats && {
          audio_ms: stats.receivedMs,
          untranscribed_ms: stats.untranscribedMs,
          engine: stats.engine,
        }),
      })
    }
  }

  return {
    /** Writes the file to disk; throws `request_too_large` above `fileBytesMax`. */
    async receive(filename: string | null, bytes: AsyncIterable<Uint8Array>): Promise<void> {
      audio = await spoolAudio(bytes, { folder, filename, bytesMax: fileBytesMax })
      if (isClosed) await audio.close()
    },
    /**
     * Transcribes the file. The caller consumes all parts or returns the generator: then, or when
     * it throws an `AppError`, all resources are released.
     */
    transcribe(request: TranscriptionRequest): FileParts {
      if (audio === null) throw invalidField('file', messages.noFile)
      return run(audio, request)
    },
    /** The client disconnected. */
    abandon: () => controller.abort(clientDisconnected()),
    close,
  }
}

function createJob(
  { pool, config }: TranscriptionsDeps,
  audio: SpooledAudio,
  request: TranscriptionRequest,
  signal: AbortSignal,
): FileJob {
  const choice = chooseEngine(request, pool, config.speech.models)
  const encoding = detectEncoding(audio)
  if (!pool.hasCapacity(choice)) throw atCapacity('engine_busy')
  return {
    audio,
    encoding,
    language: choice.language,
    engineName: choice.engineName,
    vocabulary: request.vocabulary,
    allowsGaps: request.format === 'verbose_json',
    signal,
  }
}

function unknownModel(name: string): AppError {
  return new AppError('model_not_found', messages.unknownModel(name), { param: 'model' })
}

/** Throws `model_not_found` or `unsupported_language`. `models`: names that mean any engine. */
function chooseEngine(
  { model, language }: TranscriptionRequest,
  pool: EnginePool,
  models: readonly string[],
): EngineChoice {
  const engine = models.includes(model) ? null : pool.engines.find(({ name }) => name === model)
  if (engine === undefined) {
    throw unknownModel(model)
  }
  const served = engine?.languages ?? pool.languages
  if (isLanguage(language) && served.includes(language)) {
    return { language, engineName: engine?.name ?? null, avoid: null }
  }
  throw invalidField('language', messages.unsupportedLanguage(served), 'unsupported_language')
}

function outcomeOf(failure: AppError | null): SpeechUse['outcome'] {
  if (failure === null) return 'completed'
  return failure.kind === 'client_closed' ? 'cancelled' : 'failed'
}
