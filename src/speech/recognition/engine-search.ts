import { followSignal, sleep } from '#lib/deadline.ts'
import { EngineError } from '#speech/engine.ts'
import { EngineConnection, type EngineRequest, openEngineConnection } from './engine-connection.ts'

export type EngineSearchOptions = {
  readonly request: Omit<EngineRequest, 'signal'>
  /** How long to retry. */
  readonly limitMs: number
  /** Engine failures within the failure window that are followed by a search. */
  readonly failuresMax: number
  /** A connection is ready to be taken. */
  readonly found: () => void
  /** An attempt failed and will be retried. */
  readonly retrying: () => void
  readonly failed: (error: EngineError) => void
}

const pauseMsMin = 100
const pauseMsMax = 4_000
const failureWindowMs = 600_000

/**
 * Opens the next engine connection, with retries; one search at a time. Owns the failure budget of
 * the session.
 */
export class EngineSearch {
  readonly #options: EngineSearchOptions
  #controller: AbortController | null = null
  #found: EngineConnection | null = null
  #failedAt: number[] = []

  constructor(options: EngineSearchOptions) {
    this.#options = options
  }

  /** Whether the failure budget allows another search after a failure. */
  hasBudget(): boolean {
    const since = performance.now() - failureWindowMs
    this.#failedAt = this.#failedAt.filter((at) => at > since)
    return this.#failedAt.length < this.#options.failuresMax
  }

  /** Counts a failure and searches, preferring another engine than the one that failed. */
  startAfterFailure(engineName: string): void {
    this.#failedAt.push(performance.now())
    this.start(engineName)
  }

  /** Starts a search unless one is running. */
  start(avoid: string | null = null): void {
    if (this.#controller !== null) return
    this.#controller = new AbortController()
    void this.#run(this.#controller, avoid)
  }

  /** The connection that was found, once. */
  take(): EngineConnection | null {
    const connection = this.#found
    if (connection !== null) this.#controller = null
    this.#found = null
    return connection
  }

  /** Stops the search and closes a connection that was not taken. */
  stop(): void {
    this.#controller?.abort()
    this.#controller = null
    this.#found?.abort()
    this.#found = null
  }

  async #run(search: AbortController, avoid: string | null): Promise<void> {
    const isCurrent = () => this.#controller === search && !search.signal.aborted
    const { controller, release } = followSignal(search.signal)
    const timer = setTimeout(() => controller.abort(), this.#options.limitMs)
    try {
      const { request } = this.#options
      const choice = { ...request.choice, avoid }
      const connection = await openWithRetries(
        { ...request, choice, signal: controller.signal },
        () => {
          if (isCurrent()) this.#options.retrying()
        },
      )
      if (!isCurrent()) return connection.abort()
      this.#found = connection
      this.#options.found()
    } catch (error) {
      if (!isCurrent()) return
      this.#controller = null
      this.#options.failed(error as EngineError)
    } finally {
      clearTimeout(timer)
      release()
    }
  }
}

/** Retries until the signal aborts, then throws the last `EngineError`. */
async function openWithRetries(
  request: EngineRequest,
  retrying: () => void,
): Promise<EngineConnection> {
  for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
    const outcome = await attempt(request)
    if (outcome instanceof EngineConnection) return outcome
    // The engine's own error is more specific than a timeout.
    if (request.signal.aborted || outcome.kind === 'refused') throw outcome
    retrying()
    await sleep(pauseMs, request.signal).catch(() => {})
    if (request.signal.aborted) throw outcome
  }
}

async function attempt(request: EngineRequest): Promise<EngineConnection | EngineError> {
  try {
    const connection = await openEngineConnection(request)
    if (!request.signal.aborted) return connection
    connection.abort()
    return new EngineError('unreachable', 'the search was cancelled')
  } catch (error) {
    if (error instanceof EngineError) return error
    return new EngineError('broken', 'the engine could not be opened', { cause: error })
  }
}
