import type { RequestPrincipal } from './request-context.ts'
import type { TraceContext } from './trace.ts'

/** Why an exchange failed: an `AppError`, or an error of a session. */
export type ExchangeError = {
  /** A constant of the program. */
  readonly kind: string
  readonly message: string
  /** Also of sessions, where no client sees it: from 500 on, the caller is not to blame. */
  readonly status: number
  readonly cause?: unknown
}

/** A call to a model, as far as it is a part of its request. */
export type ExchangeCall = {
  readonly kind: string
  readonly model: string
  readonly target: { readonly upstream: { readonly name: string } } | null
  readonly agentId: string | null
  readonly outcome: 'completed' | 'failed' | 'cancelled'
  readonly error: ExchangeError | null
  readonly retries: number
  readonly hedged: boolean
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedTokens: number
  } | null
  readonly queuedMs: number
  readonly firstEventMs: number | null
  readonly durationMs: number
  /** `performance.now()` */
  readonly endedAtMs: number
}

/** Gets each exchange once, when it has ended. */
export type ExchangeObserver = { ended(exchange: Exchange): void }

/** A streamed body, which counts its bytes itself. */
export type ByteCount = { readonly bytesOut: number }

type ExchangeFields = Readonly<Record<string, unknown>>

/**
 * One request and its response, from its arrival to its last byte: what its log line, its span and its
 * metrics say. A WebSocket is one exchange, and each of its requests another one.
 */
export class Exchange {
  readonly requestId: string
  readonly method: string
  /** Without the query, which may hold a credential. */
  readonly path: string
  /** `performance.now()` */
  readonly receivedAtMs = performance.now()
  /** The path of its endpoint with parameters; null: there is no such endpoint. */
  route: string | null = null
  /** Probes of orchestrators and scrapes: frequent, and of little interest. */
  isProbe = false
  /** The metrics of its route, which count it when its status is known. */
  meter: { ended(status: number, receivedAtMs: number): void } | null = null
  userId: string | null = null
  keyId: string | null = null
  trace: TraceContext | null = null
  clientAddress: string | null = null
  /** Whether it ends later than its handler: a stream or a WebSocket. */
  isOpen = false
  status = 0
  /** Null: unknown. */
  bytesIn: number | null = null
  bytesOut: number | null = null
  /** Its bytes are counted when the exchange is reported. */
  body: ByteCount | null = null
  /** `performance.now()` when the caller was known. */
  authorizedAtMs = 0
  /** 0 before. */
  endedAtMs = 0
  /** Why it failed, or null. */
  error: ExchangeError | null = null
  /** Whether the client disconnected before the end. */
  wasAbandoned = false
  /** Of the last generation, or of the last other call. */
  call: ExchangeCall | null = null
  callsCount = 0
  /** Attempts at upstreams, so that each has its own id there. */
  attemptsCount = 0
  inputTokens = 0
  outputTokens = 0
  cachedTokens = 0
  retries = 0
  queuedMs = 0
  queuedUntilOutputMs = 0
  /** From the arrival to the first output of a model; null without output. */
  firstEventMs: number | null = null
  /** Of the last new connection to an upstream; null: there was one already. */
  connectMs: number | null = null
  /** What else its log line says. */
  details: ExchangeFields | null = null
  readonly #observer: ExchangeObserver
  #worksRunning = 0
  #isReported = false

  constructor(
    observer: ExchangeObserver,
    { requestId, method, path }: { requestId: string; method: string; path: string },
  ) {
    this.#observer = observer
    this.requestId = requestId
    this.method = method
    this.path = path
  }

  identify({ userId, credential }: RequestPrincipal): void {
    this.userId = userId
    this.keyId = credential?.keyId ?? null
    this.authorizedAtMs = performance.now()
  }

  /** Work that the line shall contain, a call to a model or speech, has begun. */
  workStarted(): void {
    this.#worksRunning++
  }

  /** The first output of a call that has not ended, for headers that are sent then. */
  outputBegan(queuedMs: number): void {
    if (this.firstEventMs !== null) return
    this.firstEventMs = performance.now() - this.receivedAtMs
    this.queuedUntilOutputMs = queuedMs
  }

  /** Adds a call; false: the exchange was reported before, so its line does not contain it. */
  callEnded(call: ExchangeCall): boolean {
    if (!this.#endWork()) return false
    this.callsCount++
    if (call.kind === 'generate' || this.call?.kind !== 'generate') this.call = call
    this.retries += call.retries
    this.queuedMs += call.queuedMs
    if (call.firstEventMs !== null) {
      const startedAtMs = call.endedAtMs - call.durationMs
      this.firstEventMs ??= startedAtMs + call.firstEventMs - this.receivedAtMs
    }
    const { usage } = call
    this.inputTokens += usage?.inputTokens ?? 0
    this.outputTokens += usage?.outputTokens ?? 0
    this.cachedTokens += usage?.cachedTokens ?? 0
    this.#reportIfEnded()
    return true
  }

  /** Adds facts about other work; false as above. */
  workEnded(details: ExchangeFields): boolean {
    if (!this.#endWork()) return false
    this.details = { ...this.details, ...details }
    this.#reportIfEnded()
    return true
  }

  #endWork(): boolean {
    if (this.#isReported) return false
    this.#worksRunning--
    return true
  }

  /** Of a further request on the same connection. */
  next(requestId: string): Exchange {
    const exchange = new Exchange(this.#observer, { ...this, requestId })
    exchange.route = this.route
    exchange.clientAddress = this.clientAddress
    exchange.isOpen = true
    exchange.status = 200
    exchange.userId = this.userId
    exchange.keyId = this.keyId
    return exchange
  }

  /** Ends it as failed. */
  fail(error: ExchangeError): void {
    this.error = error
    this.status = error.status
    this.end()
  }

  addBytesIn(bytes: number): void {
    this.bytesIn = (this.bytesIn ?? 0) + bytes
  }

  addBytesOut(bytes: number): void {
    this.bytesOut = (this.bytesOut ?? 0) + bytes
  }

  /** The id of the next request to an upstream; upstreams may refuse an id that they are serving. */
  nextUpstreamId(): string {
    this.attemptsCount++
    return this.attemptsCount === 1 ? this.requestId : `${this.requestId}-${this.attemptsCount}`
  }

  /** The client disconnected. */
  abandon(): void {
    this.wasAbandoned = true
    this.end()
  }

  /** Further calls do nothing. Running work is waited for. */
  end(): void {
    if (this.endedAtMs !== 0) return
    this.endedAtMs = performance.now()
    this.#reportIfEnded()
  }

  #reportIfEnded(): void {
    if (this.endedAtMs === 0 || this.#isReported || this.#worksRunning > 0) return
    this.#isReported = true
    if (this.body !== null) this.addBytesOut(this.body.bytesOut)
    this.#observer.ended(this)
  }
}

/** How an exchange ended. A stream has its status long before. */
export function outcomeOf({ error, call, isOpen, status, wasAbandoned }: Exchange) {
  const failure = error ?? (isOpen ? (call?.error ?? null) : null)
  if (failure?.kind === 'client_closed') return 'cancelled'
  if (call?.outcome === 'failed' && failure !== null) return 'failed'
  if (failure !== null) return failure.status < 500 ? 'refused' : 'failed'
  if (status >= 500) return 'failed'
  if (status >= 400) return 'refused'
  const wasCut = isOpen && call?.outcome === 'cancelled'
  return wasAbandoned || wasCut ? 'cancelled' : 'completed'
}
