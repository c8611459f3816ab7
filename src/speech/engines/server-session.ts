import type { EngineConfig } from '#config/schema.ts'
import type { JsonObject } from '#lib/json.ts'
import {
  type Engine,
  EngineError,
  type EngineErrorKind,
  type EngineEvent,
  type EngineFeatures,
  type EngineOpenOptions,
  type EngineSession,
} from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { openAborted, servedLanguages } from './engine-kind.ts'
import { type ServerAddress, ServerConnection } from './server-connection.ts'

/** What a protocol adds to a connection: which frames are sent, and what received frames mean. */
export type ServerProtocol = {
  /** The connection is open; the protocol calls `session.ready` now or after a later frame. */
  opened(): void
  received(frame: JsonObject): void
  write(samples: Int16Array): void
  finalize(): void
  end(): void
  /** Whether a server that closes after `end` has returned all results; absent: never. */
  isComplete?(): boolean
  /** Stops its timers; called once, at any ending. */
  stop(): void
}

type ServerEngineOptions = {
  readonly config: EngineConfig
  readonly log: Log
  readonly features: EngineFeatures
  readonly sampleRateHz: number
  address(options: EngineOpenOptions): Omit<ServerAddress, 'url' | 'secret'>
  protocol(session: ServerSession, options: EngineOpenOptions): ServerProtocol
}

/** An engine whose sessions are WebSockets to a server. */
export function createServerEngine(engine: ServerEngineOptions): Engine {
  const { config, features, sampleRateHz } = engine
  return {
    name: config.name,
    languages: servedLanguages(config),
    sampleRateHz,
    features,
    limits: { sessionsMax: config.sessionsMax, sessionMsMax: config.sessionMsMax },
    open: (options) => {
      if (options.signal.aborted) return Promise.reject(openAborted())
      const opening = Promise.withResolvers<EngineSession>()
      new ServerSession(engine, options, opening)
      return opening.promise
    },
    close: () => Promise.resolve(),
  }
}

/**
 * One session on a speech server, and the interface of its protocol to the connection and the
 * listener. Owns the connection, the opening deadline and the ending: nothing is emitted after it.
 */
export class ServerSession {
  readonly #engine: ServerEngineOptions
  readonly #options: EngineOpenOptions
  readonly #opening: PromiseWithResolvers<EngineSession>
  readonly #connection: ServerConnection
  readonly #protocol: ServerProtocol
  readonly #timer: Timer
  #state: 'opening' | 'open' | 'over' = 'opening'
  #isEnding = false
  /** A method of the engine session is being called. */
  #isInCall = false

  constructor(
    engine: ServerEngineOptions,
    options: EngineOpenOptions,
    opening: PromiseWithResolvers<EngineSession>,
  ) {
    this.#engine = engine
    this.#options = options
    this.#opening = opening
    this.#protocol = engine.protocol(this, options)
    const { config } = engine
    const address = { ...engine.address(options), url: config.url ?? '', secret: config.key }
    this.#connection = new ServerConnection(address, {
      opened: () => this.#protocol.opened(),
      received: (frame) => this.#protocol.received(frame),
      failed: (error) => this.#onConnectionFailed(error),
    })
    const expire = () => this.fail('unreachable', `it was not ready within ${config.openMs} ms`)
    this.#timer = setTimeout(expire, config.openMs)
    options.signal.addEventListener('abort', this.#onAbort)
  }

  /** Sends a text or binary frame. */
  send(data: string | Uint8Array): void {
    this.#connection.send(data)
  }

  sendJson(frame: JsonObject): void {
    this.#connection.send(JSON.stringify(frame))
  }

  /** Whether the server reads more slowly than we write. */
  hasBacklog(): boolean {
    return this.#connection.bufferedBytes() > 0
  }

  /** The server accepts audio: resolves `open`. */
  ready(): void {
    if (this.#state !== 'opening') return
    this.#state = 'open'
    this.#stopOpening()
    const protocol = this.#protocol
    this.#opening.resolve({
      write: (samples) => this.#call(() => protocol.write(samples)),
      finalize: () => this.#call(() => protocol.finalize()),
      end: () =>
        this.#call(() => {
          this.#isEnding = true
          protocol.end()
        }),
      abort: () => {
        if (this.#settle()) this.#connection.terminate()
      },
    })
  }

  emit(event: Exclude<EngineEvent, { type: 'ended' | 'failed' }>): void {
    if (this.#state === 'open') this.#options.listener(event)
  }

  ended(): void {
    if (!this.#settle()) return
    this.#connection.close()
    this.#options.listener({ type: 'ended' })
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
    this.#engine.log.warn(message, { engine: this.#engine.config.name, detail })
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

  #onConnectionFailed(error: EngineError): void {
    if (this.#state === 'over') return
    if (this.#isEnding && this.#protocol.isComplete?.() === true) {
      this.ended()
    } else {
      const { config, log } = this.#engine
      const { message: detail } = error
      log.info('speech server connection failed', { engine: config.name, detail })
      this.#fail(error)
    }
  }

  #fail(error: EngineError): void {
    if (this.#isInCall) {
      this.defer(() => this.#fail(error))
      return
    }
    const isOpen = this.#state === 'open'
    if (!this.#settle()) return
    this.#connection.terminate()
    if (isOpen) this.#options.listener({ type: 'failed', error })
    else this.#opening.reject(error)
  }

  /** Returns whether this call ends the session. */
  #settle(): boolean {
    if (this.#state === 'over') return false
    this.#state = 'over'
    this.#stopOpening()
    this.#protocol.stop()
    return true
  }

  #stopOpening(): void {
    clearTimeout(this.#timer)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
  }
}
