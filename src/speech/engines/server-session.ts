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
import { servedLanguages } from './served-languages.ts'
import { connectToServer, type ServerAddress, type ServerConnection } from './server-connection.ts'

/** What a protocol adds to a connection: which frames go out, and what those that come in mean. */
export type ServerProtocol = {
  /** The connection is open; `line.ready` follows now or with a later frame. */
  opened(): void
  frame(frame: JsonObject): void
  write(samples: Int16Array): void
  finalize(): void
  end(): void
  /** Whether a server that closes after `end` has said everything. */
  isAnswered(): boolean
  /** Ends its timers; called once, at whatever end. */
  stop(): void
}

/** A protocol's way to the server and to the listener; deaf after an ending. */
export type ServerLine = {
  sendText(text: string): void
  sendJson(frame: JsonObject): void
  sendBytes(bytes: Uint8Array): void
  /** Whether the server reads more slowly than it is written to. */
  isClogged(): boolean
  ready(): void
  emit(event: Exclude<EngineEvent, { type: 'ended' | 'failed' }>): void
  ended(): void
  fail(kind: EngineErrorKind, message: string): void
  /** Does it in this turn of the loop, but not inside the caller's own call. */
  soon(action: () => void): void
  /** What went wrong and does not matter. */
  note(message: string, detail: string): void
}

type ServerEngine = {
  readonly config: EngineConfig
  readonly log: Log
  readonly features: EngineFeatures
  readonly sampleRateHz: number
  address(options: EngineOpenOptions): Omit<ServerAddress, 'url' | 'secret'>
  protocol(line: ServerLine, options: EngineOpenOptions): ServerProtocol
}

/** An engine whose every session is one WebSocket to a server. */
export function createServerEngine(engine: ServerEngine): Engine {
  const { config, features, sampleRateHz } = engine
  return {
    name: config.name,
    languages: servedLanguages(config),
    sampleRateHz,
    features,
    limits: { sessionsMax: config.sessionsMax, sessionMsMax: config.sessionMsMax },
    open: (options) => {
      if (options.signal.aborted) return Promise.reject(new EngineError('unreachable', givenUp))
      return new Promise((resolve, reject) => {
        new ServerSession(engine, options, { resolve, reject })
      })
    },
    // Sessions belong to their callers, and nothing else lives on.
    close: () => Promise.resolve(),
  }
}

const givenUp = 'nobody waits for it any more'

type Opening = {
  resolve(session: EngineSession): void
  reject(error: EngineError): void
}

class ServerSession implements EngineSession, ServerLine {
  readonly #engine: ServerEngine
  readonly #options: EngineOpenOptions
  readonly #opening: Opening
  readonly #connection: ServerConnection
  readonly #protocol: ServerProtocol
  readonly #timer: Timer
  #state: 'opening' | 'open' | 'over' = 'opening'
  #isEnding = false
  #isCalled = false

  constructor(engine: ServerEngine, options: EngineOpenOptions, opening: Opening) {
    this.#engine = engine
    this.#options = options
    this.#opening = opening
    this.#protocol = engine.protocol(this, options)
    const { config } = engine
    const address = { ...engine.address(options), url: config.url ?? '', secret: config.key }
    this.#connection = connectToServer(address, {
      opened: () => this.#protocol.opened(),
      frame: (frame) => this.#protocol.frame(frame),
      failed: (error) => this.#closedByServer(error),
    })
    const expire = () => this.fail('unreachable', `it was not ready within ${config.openMs} ms`)
    this.#timer = setTimeout(expire, config.openMs)
    options.signal.addEventListener('abort', this.#giveUp)
  }

  write(samples: Int16Array): void {
    this.#call(() => this.#protocol.write(samples))
  }

  finalize(): void {
    this.#call(() => this.#protocol.finalize())
  }

  end(): void {
    this.#call(() => {
      this.#isEnding = true
      this.#protocol.end()
    })
  }

  abort(): void {
    if (this.#settle()) this.#connection.terminate()
  }

  sendText(text: string): void {
    this.#connection.sendText(text)
  }

  sendJson(frame: JsonObject): void {
    this.#connection.sendText(JSON.stringify(frame))
  }

  sendBytes(bytes: Uint8Array): void {
    this.#connection.sendBytes(bytes)
  }

  isClogged(): boolean {
    return this.#connection.bufferedBytes() > 0
  }

  ready(): void {
    if (this.#state !== 'opening') return
    this.#state = 'open'
    this.#endOpening()
    this.#opening.resolve({
      write: (samples) => this.write(samples),
      finalize: () => this.finalize(),
      end: () => this.end(),
      abort: () => this.abort(),
    })
  }

  emit(event: EngineEvent): void {
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

  soon(action: () => void): void {
    queueMicrotask(() => {
      if (this.#state === 'open') action()
    })
  }

  note(message: string, detail: string): void {
    this.#engine.log.warn(message, { engine: this.#engine.config.name, detail })
  }

  /** What goes wrong inside a call is told after it, so that callers need not expect it there. */
  #call(action: () => void): void {
    if (this.#state !== 'open' || this.#isEnding) return
    this.#isCalled = true
    try {
      action()
    } finally {
      this.#isCalled = false
    }
  }

  readonly #giveUp = () => this.fail('unreachable', givenUp)

  #closedByServer(error: EngineError): void {
    if (this.#state === 'over') return
    if (this.#isEnding && this.#protocol.isAnswered()) {
      this.ended()
    } else {
      const { config, log } = this.#engine
      log.info('a speech server was lost', { engine: config.name, detail: error.message })
      this.#fail(error)
    }
  }

  #fail(error: EngineError): void {
    if (this.#isCalled) {
      this.soon(() => this.#fail(error))
      return
    }
    const isOpen = this.#state === 'open'
    if (!this.#settle()) return
    this.#connection.terminate()
    if (isOpen) this.#options.listener({ type: 'failed', error })
    else this.#opening.reject(error)
  }

  /** Whether this call is the one that ends it. */
  #settle(): boolean {
    if (this.#state === 'over') return false
    this.#state = 'over'
    this.#endOpening()
    this.#protocol.stop()
    return true
  }

  #endOpening(): void {
    clearTimeout(this.#timer)
    this.#options.signal.removeEventListener('abort', this.#giveUp)
  }
}
