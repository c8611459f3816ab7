import type { Config } from '#config/schema.ts'
import { sleep } from '#lib/deadline.ts'
import type { EngineError, EngineEvent } from '#speech/engine.ts'
import {
  type EngineConnection,
  type EngineRequest,
  openEngineConnection,
} from './engine-connection.ts'

type SearchListener = {
  /** A connection is ready to be taken. */
  found(): void
  /** An attempt failed and will be retried. */
  retrying(): void
  failed(error: EngineError): void
}

const pauseMsMin = 100
const pauseMsMax = 4_000
/** How long it searches, in periods of `engineStallMs`: a session that waits loses nothing. */
const periodsMax = 4
const failureWindowMs = 600_000
/** Consecutive engines that process nothing: the client, which is not read, may have left or ended. */
const stalledMax = 3

/**
 * Opens the next engine connection, with retries; one search at a time. Owns the failure budget of
 * the session.
 */
export class EngineSearch {
  readonly #request: EngineRequest
  readonly #settings: Config['speech']
  readonly #listener: SearchListener
  #controller: AbortController | null = null
  #found: EngineConnection | null = null
  #failedAt: number[] = []
  #stalled = 0

  constructor(request: EngineRequest, settings: Config['speech'], listener: SearchListener) {
    this.#request = request
    this.#settings = settings
    this.#listener = listener
  }

  /** The engine returned something. */
  received(event: EngineEvent): void {
    const isSign = event.type === 'alive' || (event.type === 'progress' && event.estimated)
    if (!isSign) this.#stalled = 0
    // Earlier failures have cost no text, and the next engine starts after this one.
    if (event.type === 'final') this.#failedAt = []
  }

  /** The engine was given up because it made no progress. */
  stalled(): void {
    this.#stalled += 1
  }

  /** Whether the failure budget allows another search after a failure. */
  hasBudget(): boolean {
    if (this.#stalled >= stalledMax) return false
    const since = performance.now() - failureWindowMs
    this.#failedAt = this.#failedAt.filter((at) => at > since)
    return this.#failedAt.length < this.#settings.rolloversMax
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
    const request = { ...this.#request, choice: { ...this.#request.choice, avoid } }
    const timeout = AbortSignal.timeout(this.#settings.engineStallMs * periodsMax)
    try {
      const signal = AbortSignal.any([search.signal, timeout])
      const connection = await openWithRetries(request, signal, () => {
        if (isCurrent()) this.#listener.retrying()
      })
      if (!isCurrent()) return connection.abort()
      this.#found = connection
      this.#listener.found()
    } catch (error) {
      if (!isCurrent()) return
      this.#controller = null
      this.#listener.failed(error as EngineError)
    }
  }
}

/** Retries until the signal aborts, then throws the last `EngineError`. */
async function openWithRetries(
  request: EngineRequest,
  signal: AbortSignal,
  retrying: () => void,
): Promise<EngineConnection> {
  for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
    try {
      return await openEngineConnection(request, signal)
    } catch (error) {
      // The engine's own error is more specific than a timeout.
      if (signal.aborted || (error as EngineError).kind === 'refused') throw error
      retrying()
      await sleep(pauseMs, signal).catch(() => {
        throw error
      })
    }
  }
}
