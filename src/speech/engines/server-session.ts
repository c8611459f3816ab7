import type { EngineConfig } from '#config/schema.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import {
  EngineError,
  type EngineErrorKind,
  type EngineEvent,
  type EngineFeatures,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { describeEngine, type EngineKind, openAborted } from './engine-kind.ts'
import { AudioFramer, bytesOf, ServerProgress } from './server-audio.ts'
import { connect } from './server-connection.ts'

/** How to connect to the servers of one kind or dialect, and how to talk to them. */
export type ServerDialect = {
  readonly features: EngineFeatures
  /** Default: 16 kHz. */
  readonly sampleRateHz?: number
  /** Audio per frame. */
  readonly frameMs: number
  /** Whether the server reports what it has processed, and needs no further audio to do so. */
  readonly reportsProgress: boolean
  /** The path for a URL without one. */
  readonly path: string
  /** The scheme of the credential. */
  readonly authorization: 'Bearer' | 'Token'
  readonly headers?: Readonly<Record<string, string>>
  query?(session: ServerSession): readonly (readonly [name: string, value: string])[]
  protocol(session: ServerSession): ServerProtocol
}

/** Which frames are sent, and what received frames mean. */
export type ServerProtocol = {
  /** The connection is open; the protocol calls `session.ready` now or after a later frame. */
  opened(): void
  received(frame: JsonObject): void
  /** Sends one frame of audio; the samples are only valid during the call. */
  send(samples: Int16Array): void
  /** All audio before `finalize` and `end` was sent. */
  finalize(): void
  end(): void
  /** As in `EngineSession`. */
  finalizesByEnding?(): boolean
  /** Whether a server that closes after `end` has returned all results; absent: never. */
  isComplete?(): boolean
  /** Stops its timers; called once, at any ending. */
  stop?(): void
}

/** Longer than the final of any utterance with all of its words. */
const frameCharsMax = 1_048_576
/** Half a minute of speech at 16 kHz, in addition to the kernel's buffers. */
const bufferBytesMax = 1_048_576
const quotedCharsMax = 200
const messageCharsMax = 400
/** For the closing handshake, which some servers omit. */
const closeMs = 2_000

/** An engine kind whose sessions are WebSockets to a server. */
export function serverKind(dialectOf: (config: EngineConfig) => ServerDialect): EngineKind {
  return {
    location: 'url',
    create(config, { log }) {
      const dialect = dialectOf(config)
      return {
        ...describeEngine(config, dialect.sampleRateHz),
        features: dialect.features,
        async open(options) {
          if (options.signal.aborted) throw openAborted()
          return new ServerSession(config, log, dialect, options).opening.promise
        },
        close: async () => {},
      }
    },
  }
}

/**
 * One session on a speech server: the WebSocket, which carries JSON text frames and audio, and the
 * interface of its protocol to the listener. Owns the opening deadline and the ending: nothing is
 * emitted after it.
 */
export class ServerSession {
  readonly config: EngineConfig
  readonly options: EngineOpenOptions
  readonly sampleRateHz: number
  readonly opening = Promise.withResolvers<EngineSession>()
  /** Audio sent to the server. */
  sentMs = 0
  readonly #log: Log
  readonly #progress: ServerProgress
  readonly #framer: AudioFramer
  readonly #protocol: ServerProtocol
  readonly #socket: WebSocket
  readonly #timer: Timer
  #state: 'opening' | 'open' | 'over' = 'opening'
  /** The connection was closed or has failed; the ending may still be outstanding. */
  #isDisconnected = false
  #isEnding = false
  /** A method of the engine session is being called. */
  #isInCall = false

  constructor(config: EngineConfig, log: Log, dialect: ServerDialect, options: EngineOpenOptions) {
    const { sampleRateHz } = describeEngine(config, dialect.sampleRateHz)
    this.config = config
    this.options = options
    this.sampleRateHz = sampleRateHz
    this.#log = log
    this.#progress = new ServerProgress(this, dialect.reportsProgress ? null : config.paceMax)
    const protocol = dialect.protocol(this)
    this.#protocol = protocol
    this.#framer = new AudioFramer(sampleRateHz, dialect.frameMs, (samples) =>
      protocol.send(samples),
    )
    this.#socket = this.#connect(dialect)
    const expire = () => this.fail('unreachable', `it was not ready within ${config.openMs} ms`)
    this.#timer = setTimeout(expire, config.openMs)
    options.signal.addEventListener('abort', this.#onAbort)
  }

  /** Sends a text or binary frame; the bytes may be reused after the call. */
  send(data: string | Uint8Array): void {
    if (this.#isDisconnected) return
    this.#socket.send(data)
    if (this.#socket.bufferedAmount > bufferBytesMax) {
      this.#onDisconnected('broken', 'the server does not read')
    }
  }

  sendJson(frame: JsonObject): void {
    this.send(JSON.stringify(frame))
  }

  /** Sends a frame of audio; `frame`: the samples in another encoding. */
  sendAudio(samples: Int16Array, frame: string | Uint8Array = bytesOf(samples)): void {
    this.sentMs += (samples.length * 1000) / this.sampleRateHz
    this.send(frame)
    this.#progress.sent()
  }

  /** The server has processed the audio before this time. */
  processed(untilMs: number): void {
    this.#progress.processed(untilMs)
  }

  /** Whether the server reads more slowly than we write. */
  hasBacklog(): boolean {
    return this.#socket.bufferedAmount > 0
  }

  /** The server accepts audio: resolves `open`. */
  ready(): void {
    if (this.#state !== 'opening') return
    this.#state = 'open'
    this.#stopOpening()
    this.opening.resolve({
      write: (samples) => this.#call(() => this.#framer.write(samples)),
      finalize: () =>
        this.#call(() => {
          this.#framer.flush()
          this.#protocol.finalize()
        }),
      finalizesByEnding: () => this.#protocol.finalizesByEnding?.() === true,
      end: () =>
        this.#call(() => {
          this.#isEnding = true
          this.#framer.flush()
          this.#protocol.end()
        }),
      abort: () => {
        if (this.#settle()) this.#terminate()
      },
    })
  }

  emit(event: Exclude<EngineEvent, { type: 'ended' | 'failed' }>): void {
    if (this.#state === 'open') this.options.listener(event)
  }

  /** Closes the connection in order, or forcibly if the server does not respond. */
  ended(): void {
    if (!this.#settle()) return
    this.#isDisconnected = true
    const timer = setTimeout(() => this.#socket.terminate(), closeMs)
    this.#socket.onclose = () => clearTimeout(timer)
    this.#socket.close(1000)
    this.options.listener({ type: 'ended' })
  }

  fail(kind: EngineErrorKind, message: string): void {
    this.#fail(new EngineError(kind, message))
  }

  /** Runs an action after the current call, in the same turn of the event loop. */
  defer(action: () => void): void {
    queueMicrotask(() => {
      if (this.#state === 'open') action()
    })
  }

  /** Logs a problem that does not end the session. */
  warn(message: string, detail: string): void {
    this.#log.warn(message, { engine: this.config.name, detail })
  }

  #connect({ path, authorization, headers, query }: ServerDialect): WebSocket {
    const { url = '', key } = this.config
    const address = {
      url,
      path,
      query: query?.(this) ?? [],
      headers: { ...headers, ...(key && { authorization: `${authorization} ${key}` }) },
    }
    return connect(address, {
      opened: () => {
        if (!this.#isDisconnected) this.#protocol.opened()
      },
      received: (data) => this.#onMessage(data),
      pinged: () => this.emit({ type: 'alive' }),
      closed: (kind, message) => this.#onDisconnected(kind, message),
    })
  }

  /** Failures inside a call are reported after it, so that callers need not expect them there. */
  #call(action: () => void): void {
    if (this.#state !== 'open' || this.#isEnding) return
    this.#isInCall = true
    try {
      action()
    } finally {
      this.#isInCall = false
    }
  }

  readonly #onAbort = () => this.#fail(openAborted())

  #onMessage(data: unknown) {
    if (this.#isDisconnected) return
    const text = typeof data === 'string' ? data : '(binary)'
    const frame = text.length > frameCharsMax ? null : parseJson(text)
    if (isRecord(frame)) {
      this.emit({ type: 'alive' })
      return this.#protocol.received(frame)
    }
    const quoted = text.slice(0, quotedCharsMax)
    this.#onDisconnected('broken', `the server sent an invalid frame: ${quoted}`)
  }

  #onDisconnected(kind: EngineErrorKind, message: string) {
    if (this.#isDisconnected) return
    this.#terminate()
    if (this.#isEnding && this.#protocol.isComplete?.() === true) return this.ended()
    // Servers like to quote the credential.
    const { name: engine, key } = this.config
    const safe = key === undefined ? message : message.replaceAll(key, '[redacted]')
    const detail = safe.slice(0, messageCharsMax)
    this.#log.info('speech server connection failed', { engine, detail })
    this.fail(kind, detail)
  }

  #fail(error: EngineError): void {
    if (this.#isInCall) {
      this.defer(() => this.#fail(error))
      return
    }
    const isOpen = this.#state === 'open'
    if (!this.#settle()) return
    this.#terminate()
    if (isOpen) this.options.listener({ type: 'failed', error })
    else this.opening.reject(error)
  }

  /** Returns whether this call ends the session. */
  #settle(): boolean {
    if (this.#state === 'over') return false
    this.#state = 'over'
    this.#stopOpening()
    this.#framer.stop()
    this.#progress.stop()
    this.#protocol.stop?.()
    return true
  }

  #stopOpening(): void {
    clearTimeout(this.#timer)
    this.options.signal.removeEventListener('abort', this.#onAbort)
  }

  #terminate(): void {
    this.#isDisconnected = true
    this.#socket.terminate()
  }
}
