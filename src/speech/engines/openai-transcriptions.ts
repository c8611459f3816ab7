import { jitteredBackoffMs } from '#lib/backoff.ts'
import { type Engine, EngineError } from '#speech/engine.ts'
import { describeEngine, type EngineKind, openAborted } from './engine-kind.ts'
import {
  type Recognise,
  type Recognised,
  type RecogniseRequest,
  SegmentSession,
} from './segments/segment-session.ts'
import {
  endpointOf,
  probeServer,
  requestTranscript,
  TranscriptionError,
  type TranscriptionServer,
} from './transcription-request.ts'

const segmentMsMax = 20_000
const partialMs = 1_000
/** Less than the time after which an engine counts as stalled. */
const finalMsMax = 25_000
const partialMsMax = 10_000
/** Of one final. */
const attemptsMax = 4
const retryBackoff = { firstMs: 250, maxMs: 4_000 }
/** With so many requests at the server, partials are not requested. */
const busyRequests = 4
/** A probe that succeeded holds for sessions that open soon after. */
const probeFreshMs = 10_000
const defaultModel = 'whisper-1'

/**
 * A server that has only `POST /v1/audio/transcriptions`: it receives segments cut by voice activity,
 * with the text before them as prompt, and the open segment again for partials.
 */
export const openAiTranscriptions: EngineKind = {
  location: 'url',
  declaresFeatures: true,
  create(config, { log, fetch }) {
    if (fetch === undefined) throw new Error('transcription servers need a fetch')
    const engine = describeEngine(config)
    const declared = config.features ?? ['partials', 'words']
    const features = {
      partials: declared.includes('partials'),
      words: declared.includes('words'),
      confidence: false,
      finalize: true,
    }
    const server: TranscriptionServer = {
      url: endpointOf(config.url ?? ''),
      key: config.key,
      model: config.model ?? defaultModel,
      sampleRateHz: engine.sampleRateHz,
      fetch,
    }
    const requests = createRequests(server, features.words, (message, detail) =>
      log.warn(message, { engine: config.name, detail }),
    )
    let probedAt = Number.NEGATIVE_INFINITY
    return {
      ...engine,
      features,
      async open(options) {
        if (options.signal.aborted) throw openAborted()
        if (performance.now() - probedAt > probeFreshMs) {
          const limit = AbortSignal.timeout(config.openMs)
          await probeServer(server, AbortSignal.any([options.signal, limit]))
          if (options.signal.aborted) throw openAborted()
          probedAt = performance.now()
        }
        return new SegmentSession(
          requests.recognise,
          {
            sampleRateHz: engine.sampleRateHz,
            segmentMsMax,
            partialMs: features.partials ? partialMs : 0,
            hasWordTimes: requests.hasWordTimes,
          },
          options,
        )
      },
      close: async () => {},
    } satisfies Engine
  },
}

/** The requests of all sessions of an engine. */
function createRequests(
  server: TranscriptionServer,
  wantsWords: boolean,
  warn: (message: string, detail: string) => void,
) {
  let running = 0
  /** Servers without `verbose_json` refuse it; they are asked for plain JSON from then on. */
  let format: 'verbose_json' | 'json' = wantsWords ? 'verbose_json' : 'json'
  let hasWordTimes = false

  async function post(request: RecogniseRequest, limitMs: number): Promise<Recognised> {
    running += 1
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(limitMs)])
    try {
      const recognised = await requestTranscript(server, { ...request, signal }, format)
      if (recognised.text !== '') hasWordTimes = recognised.words.length > 0
      return recognised
    } finally {
      running -= 1
    }
  }

  async function final(request: RecogniseRequest): Promise<Recognised> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await post(request, finalMsMax)
      } catch (error) {
        if (request.signal.aborted || !(error instanceof TranscriptionError)) throw error
        const { kind, status, message, retryAfterMs } = error
        if (format === 'verbose_json' && (status === 400 || status === 422)) {
          format = 'json'
          warn('speech server refused word times', message)
          continue
        }
        if (kind === 'refused' || attempt >= attemptsMax) throw error
        warn('speech server request failed, retrying', message)
        request.alive()
        await Bun.sleep(Math.max(retryAfterMs, jitteredBackoffMs(attempt, retryBackoff)))
        if (request.signal.aborted) throw new EngineError('unreachable', 'aborted')
      }
    }
  }

  const recognise: Recognise = async (request) => {
    if (!request.isPartial) return final(request)
    return running >= busyRequests ? null : post(request, partialMsMax)
  }
  return { recognise, hasWordTimes: () => hasWordTimes }
}
