import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import type { EngineKind } from './engine-kind.ts'
import { type ServerProtocol, type ServerSession, serverKind } from './server-session.ts'
import { finalEvent, readConfidence, readSeconds, readText, readWords } from './words.ts'

/** The range of `utterance_end_ms` that every server accepts. */
const utteranceEndMs = { min: 1_000, max: 5_000 }
/** Key terms of one session. */
const keytermsMax = 100
/** Audio at the end that may stay without a result: too short for a word. */
const tailMs = 100
/** A server that keeps up has returned the results of all earlier audio. */
const resultDelayMs = 1_000

type DeepgramTimeouts = {
  /** The server closes a session after ten silent seconds. */
  readonly keepAliveMs: number
  /** `Finalize` may stay unanswered if there was almost no audio. */
  readonly finalizeMs: number
  /** The same if results are outstanding: a slow server needs time, others ignore `Finalize`. */
  readonly slowFinalizeMs: number
}

/** What was learned about one server; shared by its sessions. */
type KnownServer = {
  /** It closes the session on `Finalize`, as WhisperLiveKit does, so finals are requested by ending. */
  refusesFinalize: boolean
}

/** Servers with Deepgram's /v1/listen. */
export function deepgramKind(
  timeouts: DeepgramTimeouts = { keepAliveMs: 4_000, finalizeMs: 3_000, slowFinalizeMs: 20_000 },
): EngineKind {
  return serverKind(() => {
    const server: KnownServer = { refusesFinalize: false }
    return {
      features: { partials: true, words: true, confidence: true, finalize: true },
      frameMs: 100,
      // Results come when there is text, which may need more audio than may be in flight.
      reportsProgress: false,
      path: '/v1/listen',
      authorization: 'Token',
      query: queryOf,
      protocol: (session) => new DeepgramProtocol(session, server, timeouts),
    }
  })
}

function queryOf({ config: { model }, options, sampleRateHz }: ServerSession) {
  const { language, endpointingMs, vocabulary } = options
  // Other models reject requests with key terms.
  const keyterms = model?.startsWith('nova-3') === true ? vocabulary.slice(0, keytermsMax) : []
  return Object.entries({
    language,
    encoding: 'linear16',
    sample_rate: String(sampleRateHz),
    channels: '1',
    interim_results: 'true',
    punctuate: 'true',
    endpointing: String(endpointingMs),
    utterance_end_ms: String(
      Math.min(Math.max(utteranceEndMs.min, endpointingMs), utteranceEndMs.max),
    ),
    vad_events: 'true',
    ...(model === undefined ? {} : { model }),
  }).concat(keyterms.map((term) => ['keyterm', term]))
}

class DeepgramProtocol implements ServerProtocol {
  readonly #session: ServerSession
  readonly #server: KnownServer
  readonly #timeouts: DeepgramTimeouts
  #finalMs = 0
  /** A partial was emitted that no final has followed. */
  #isUtteranceOpen = false
  #isClosing = false
  #finalizeTimer: Timer | null = null
  #keepAliveTimer: Timer | undefined
  /** Whether audio was sent since the last check. */
  #hasSent = false

  constructor(session: ServerSession, server: KnownServer, timeouts: DeepgramTimeouts) {
    this.#session = session
    this.#server = server
    this.#timeouts = timeouts
  }

  opened(): void {
    this.#keepAliveTimer = setInterval(() => this.#keepAlive(), this.#timeouts.keepAliveMs / 2)
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
        this.#onMetadata(frame)
        break
      case 'Error':
        this.#onError(String(message))
        break
      case 'Warning':
        session.warn('speech server warning', String(message))
        break
    }
    if (this.#finalizeTimer !== null) this.#awaitFinalize()
  }

  send(samples: Int16Array): void {
    this.#hasSent = true
    this.#session.sendAudio(samples)
  }

  finalize(): void {
    const session = this.#session
    if (this.#isCovered()) {
      session.defer(() => session.emit({ type: 'finalized' }))
    } else {
      session.sendJson({ type: 'Finalize' })
      this.#awaitFinalize()
    }
  }

  finalizesByEnding(): boolean {
    return this.#server.refusesFinalize
  }

  end(): void {
    this.#isClosing = true
    this.#session.sendJson({ type: 'CloseStream' })
  }

  isComplete(): boolean {
    return this.#isCovered(tailMs)
  }

  stop(): void {
    clearInterval(this.#keepAliveTimer)
    clearTimeout(this.#finalizeTimer ?? undefined)
    this.#finalizeTimer = null
  }

  /** Whether finals cover the sent audio, except for this much at its end. */
  #isCovered(toleranceMs = 0): boolean {
    return !this.#isUtteranceOpen && this.#finalMs + toleranceMs >= Math.floor(this.#session.sentMs)
  }

  /** Some servers also send it at the start, where its duration is 0. */
  #onMetadata(frame: JsonObject): void {
    const isStart = frame['duration'] === 0 && this.#session.sentMs > 0
    if (!this.#isClosing || isStart) return
    this.#finalized()
    this.#session.ended()
  }

  #onError(message: string): void {
    const isRefusal = this.#finalizeTimer !== null && /\bFinalize\b/.test(message)
    if (isRefusal) this.#server.refusesFinalize = true
    // Another session of this server can continue.
    this.#session.fail(isRefusal ? 'limit' : 'broken', `server error: ${message}`)
  }

  #onResults(frame: JsonObject) {
    const { alternatives } = asRecord(frame['channel'])
    const best: unknown = Array.isArray(alternatives) ? alternatives[0] : undefined
    const startMs = readSeconds(frame['start'])
    const durationMs = readSeconds(frame['duration'])
    if (!isRecord(best) || startMs === null || durationMs === null) {
      return this.#session.fail('broken', 'results without an alternative')
    }
    const { version } = asRecord(asRecord(frame['metadata'])['model_info'])
    if (version === 'whisperlivekit') this.#server.refusesFinalize = true
    const isFinal = frame['is_final'] === true
    const endMs = startMs + durationMs
    const text = readText(best['transcript'])
    // WhisperLiveKit places its last words, which have no times yet, at the end of the words before.
    const hasTimes = durationMs > 0 || !/[\p{L}\p{N}]/u.test(text)
    const times = hasTimes ? { startMs, endMs } : {}
    const result = finalEvent({
      text,
      words: readWords(best['words'], 'confidence', 'punctuated_word'),
      confidence: readConfidence(best['confidence']),
      speechFinal: frame['speech_final'] === true,
      ...times,
    })
    if (isFinal) {
      this.#session.emit(result)
      this.#finalMs = Math.max(this.#finalMs, endMs)
    } else if (result.type === 'final') {
      const { startMs, endMs } = result
      this.#session.emit({ type: 'partial', text, startMs, endMs })
    }
    this.#isUtteranceOpen = !isFinal && (this.#isUtteranceOpen || text !== '')
    this.#session.processed(endMs)
    if (frame['from_finalize'] === true) this.#finalized()
  }

  #finalized(): void {
    if (this.#finalizeTimer === null) return
    clearTimeout(this.#finalizeTimer)
    this.#finalizeTimer = null
    this.#session.emit({ type: 'finalized' })
  }

  /** Waits from now on: the server may be slow, as long as it sends anything. */
  #awaitFinalize(): void {
    clearTimeout(this.#finalizeTimer ?? undefined)
    const { finalizeMs, slowFinalizeMs } = this.#timeouts
    const isSlow = !this.#isCovered(resultDelayMs)
    // An emitted partial must still become a final.
    const expire = () => (this.#isUtteranceOpen ? this.#awaitFinalize() : this.#finalized())
    this.#finalizeTimer = setTimeout(expire, isSlow ? slowFinalizeMs : finalizeMs)
  }

  /**
   * Called twice per `keepAliveMs`, so that the server never waits longer. After `CloseStream` a
   * server may read nothing more, and with an unread frame not even answers to its pings.
   */
  #keepAlive(): void {
    if (!this.#hasSent && !this.#isClosing) this.#session.sendJson({ type: 'KeepAlive' })
    this.#hasSent = false
  }
}
