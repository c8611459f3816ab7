import { sleep } from '#lib/deadline.ts'
import type { EngineError } from '#speech/engine.ts'
import {
  type EngineConnection,
  type EngineRequest,
  openEngineConnection,
} from './engine-connection.ts'

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
    const { request, limitMs } = this.#options
    try {
      const connection = await openWithRetries(
        {
          ...request,
          choice: { ...request.choice, avoid },
          signal: AbortSignal.any([search.signal, AbortSignal.timeout(limitMs)]),
        },
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
    }
  }
}

/** Retries until the signal aborts, then throws the last `EngineError`. */
async function openWithRetries(
  request: EngineRequest,
  retrying: () => void,
): Promise<EngineConnection> {
  for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
    try {
      return await openEngineConnection(request)
    } catch (error) {
      // The engine's own error is more specific than a timeout.
      if (request.signal.aborted || (error as EngineError).kind === 'refused') throw error
      retrying()
      await sleep(pauseMs, request.signal).catch(() => {
        throw error
      })
    }
  }
}
