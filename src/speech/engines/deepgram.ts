import type { EngineConfig } from '#config/schema.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import type { Engine, EngineOpenOptions } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import type { EngineKind } from './engine-kind.ts'
import { AudioFramer, bytesOf } from './server-audio.ts'
import { createServerEngine, type ServerProtocol, type ServerSession } from './server-session.ts'
import { readConfidence, readSeconds, readWords } from './words.ts'

const defaultSampleRateHz = 16_000
const frameMs = 100
/** The server's minimum for `utterance_end_ms`. */
const utteranceEndMsMin = 1_000
/** Key terms of one session. */
const keytermsMax = 100
/** Audio at the end that may stay without a result: too short for a word. */
const tailMs = 100

type DeepgramTimeouts = {
  /** The server closes a session after ten silent seconds. */
  readonly keepAliveMs: number
  /** `Finalize` may stay unanswered if there was almost no audio. */
  readonly finalizeMs: number
}

/** Servers with Deepgram's /v1/listen. */
export function createDeepgramEngine(
  config: EngineConfig,
  deps: { log: Log },
  timeouts: DeepgramTimeouts = { keepAliveMs: 4_000, finalizeMs: 3_000 },
): Engine {
  const sampleRateHz = config.sampleRateHz ?? defaultSampleRateHz
  return createServerEngine({
    config,
    log: deps.log,
    features: { partials: true, words: true, confidence: true, finalize: true },
    sampleRateHz,
    address: (options) => ({
      defaultPath: '/v1/listen',
      query: queryOf(config, sampleRateHz, options),
      headers: config.key === undefined ? {} : { authorization: `Token ${config.key}` },
    }),
    protocol: (session) => new DeepgramProtocol(session, sampleRateHz, timeouts),
  })
}

export const deepgram: EngineKind = { location: 'url', create: createDeepgramEngine }

function queryOf(config: EngineConfig, sampleRateHz: number, options: EngineOpenOptions) {
  const query: [string, string][] = [
    ['language', options.language],
    ['encoding', 'linear16'],
    ['sample_rate', String(sampleRateHz)],
    ['channels', '1'],
    ['interim_results', 'true'],
    ['punctuate', 'true'],
    ['endpointing', String(options.endpointingMs)],
    ['utterance_end_ms', String(Math.max(utteranceEndMsMin, options.endpointingMs))],
    ['vad_events', 'true'],
  ]
  if (config.model !== undefined) query.push(['model', config.model])
  // Other models reject requests with key terms.
  if (config.model?.startsWith('nova-3') === true) {
    for (const term of options.vocabulary.slice(0, keytermsMax)) query.push(['keyterm', term])
  }
  return query
}

class DeepgramProtocol implements ServerProtocol {
  readonly #session: ServerSession
  readonly #sampleRateHz: number
  readonly #timeouts: DeepgramTimeouts
  readonly #framer: AudioFramer
  #sentMs = 0
  #processedMs = 0
  #finalMs = 0
  /** A partial was emitted that no final has followed. */
  #isUtteranceOpen = false
  #isClosing = false
  #finalizeTimer: Timer | null = null
  #keepAliveTimer: Timer | null = null
  #sentAt = 0
  #isStopped = false

  constructor(session: ServerSession, sampleRateHz: number, timeouts: DeepgramTimeouts) {
    this.#session = session
    this.#sampleRateHz = sampleRateHz
    this.#timeouts = timeouts
    this.#framer = new AudioFramer(sampleRateHz, frameMs, (samples) => this.#send(samples))
  }

  opened(): void {
    this.#postponeKeepAlive()
    this.#session.ready()
  }

  received(frame: JsonObject): void {
    const session = this.#session
    const message = frame['description'] ?? frame['message']
    switch (frame['type']) {
      case 'Results':
        this.#onResults(frame)
        break
      case 'SpeechStarted': {
        const atMs = readSeconds(frame['timestamp'])
        if (atMs !== null) session.emit({ type: 'speech-start', atMs })
        break
      }
      case 'Metadata':
        // Some servers also send it at the start.
        if (!this.#isClosing) break
        this.#finalized()
        session.ended()
        break
      case 'Error':
        session.fail('broken', `server error: ${message}`)
        break
      case 'Warning':
        session.warn('speech server warning', String(message))
        break
    }
  }

  write(samples: Int16Array): void {
    this.#framer.write(samples)
  }

  finalize(): void {
    const session = this.#session
    this.#framer.flush()
    if (this.#isCovered()) {
      session.defer(() => session.emit({ type: 'finalized' }))
    } else {
      session.sendJson({ type: 'Finalize' })
      this.#awaitFinalize()
    }
  }

  end(): void {
    this.#framer.flush()
    this.#isClosing = true
    this.#session.sendJson({ type: 'CloseStream' })
  }

  isComplete(): boolean {
    return this.#isCovered(tailMs)
  }

  stop(): void {
    this.#isStopped = true
    this.#framer.stop()
    if (this.#keepAliveTimer !== null) clearTimeout(this.#keepAliveTimer)
    if (this.#finalizeTimer !== null) clearTimeout(this.#finalizeTimer)
  }

  #send(samples: Int16Array): void {
    this.#sentMs += (samples.length * 1000) / this.#sampleRateHz
    this.#postponeKeepAlive()
    this.#session.send(bytesOf(samples))
  }

  /** Whether finals cover the sent audio, except for this much at its end. */
  #isCovered(toleranceMs = 0): boolean {
    return !this.#isUtteranceOpen && this.#finalMs + toleranceMs >= Math.floor(this.#sentMs)
  }

  #onResults(frame: JsonObject) {
    const { alternatives } = asRecord(frame['channel'])
    const best: unknown = Array.isArray(alternatives) ? alternatives[0] : undefined
    const startMs = readSeconds(frame['start'])
    const durationMs = readSeconds(frame['duration'])
    if (!isRecord(best) || startMs === null || durationMs === null) {
      return this.#session.fail('broken', 'results without an alternative')
    }
    const isFinal = frame['is_final'] === true
    const endMs = startMs + durationMs
    this.#emitResult(best, { startMs, endMs, isFinal, frame })
    if (isFinal) this.#finalMs = Math.max(this.#finalMs, endMs)
    const processedMs = Math.min(endMs, Math.round(this.#sentMs))
    if (processedMs > this.#processedMs) {
      this.#processedMs = processedMs
      this.#session.emit({ type: 'progress', processedMs, estimated: false })
    }
    if (frame['from_finalize'] === true) this.#finalized()
  }

  #emitResult(
    best: JsonObject,
    result: { startMs: number; endMs: number; isFinal: boolean; frame: JsonObject },
  ): void {
    const session = this.#session
    const { transcript, confidence } = best
    const text = typeof transcript === 'string' ? transcript.trim() : ''
    const words = readWords(best['words'], 'confidence', 'punctuated_word')
    const startMs = words[0]?.startMs ?? result.startMs
    const endMs = words.at(-1)?.endMs ?? result.endMs
    if (text !== '' && result.isFinal) {
      session.emit({
        type: 'final',
        text,
        startMs,
        endMs,
        words,
        confidence: readConfidence(confidence),
        speechFinal: result.frame['speech_final'] === true,
      })
    } else if (text !== '') {
      session.emit({ type: 'partial', text, startMs, endMs })
    } else if (result.isFinal) {
      session.emit({ type: 'utterance-dropped' })
    }
    this.#isUtteranceOpen = !result.isFinal && (this.#isUtteranceOpen || text !== '')
  }

  #finalized(): void {
    if (this.#finalizeTimer === null) return
    clearTimeout(this.#finalizeTimer)
    this.#finalizeTimer = null
    this.#session.emit({ type: 'finalized' })
  }

  #awaitFinalize(): void {
    this.#finalizeTimer = setTimeout(() => {
      // An emitted partial must still become a final.
      if (this.#isUtteranceOpen) this.#awaitFinalize()
      else this.#finalized()
    }, this.#timeouts.finalizeMs)
  }

  /** Sends a keepalive whenever nothing was sent for `keepAliveMs`; one timer serves all frames. */
  #postponeKeepAlive(): void {
    this.#sentAt = performance.now()
    if (this.#keepAliveTimer === null && !this.#isStopped) {
      this.#startKeepAliveTimer(this.#timeouts.keepAliveMs)
    }
  }

  #startKeepAliveTimer(ms: number): void {
    this.#keepAliveTimer = setTimeout(() => {
      const { keepAliveMs } = this.#timeouts
      const remainingMs = this.#sentAt + keepAliveMs - performance.now()
      if (remainingMs > 0) return this.#startKeepAliveTimer(remainingMs)
      this.#sentAt = performance.now()
      this.#session.sendJson({ type: 'KeepAlive' })
      if (!this.#isStopped) this.#startKeepAliveTimer(keepAliveMs)
    }, ms)
  }
}
