import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import type { Run, RunResult } from './wire.ts'

/** Queries have a waiting client; passages are indexed in the background. */
export type Urgency = 'query' | 'passage'

type QueuedRun = {
  readonly run: Run
  readonly resolve: (result: RunResult) => void
  readonly reject: (error: unknown) => void
}

/** The `Retry-After` of a full queue. */
const retryAfterS = 5

/**
 * The runs of one process, one at a time: queries first, each kind in the order of arrival. `start`
 * begins a run, whose end the owner reports with `settle`.
 */
export class RunQueue {
  readonly #queued: Readonly<Record<Urgency, Set<QueuedRun>>> = {
    query: new Set(),
    passage: new Set(),
  }
  readonly #start: (run: Run) => void
  readonly #runsMax: number
  #current: QueuedRun | null = null
  #closedBy: AppError | null = null

  constructor(start: (run: Run) => void, runsMax: number) {
    this.#start = start
    this.#runsMax = runsMax
  }

  /** Rejects with `upstream_overloaded` when the queue is full, or with the signal's reason. */
  add(run: Run, urgency: Urgency, signal: CancelSignal): Promise<RunResult> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      if (this.#closedBy !== null) return reject(this.#closedBy)
      const queue = this.#queued[urgency]
      if (queue.size >= this.#runsMax) return reject(full())
      // A run that has begun is completed, and its result dropped.
      const stop = () => {
        queue.delete(queued)
        reject(signal.reason)
      }
      const settle =
        <T>(end: (value: T) => void) =>
        (value: T) => {
          signal.removeEventListener('abort', stop)
          end(value)
        }
      const queued = { run, resolve: settle(resolve), reject: settle(reject) }
      signal.addEventListener('abort', stop, { once: true })
      queue.add(queued)
      this.#next()
    })
  }

  /** Ends the current run and begins the next. */
  settle(outcome: RunResult | AppError): void {
    const ended = this.#current
    this.#current = null
    if (outcome instanceof AppError) ended?.reject(outcome)
    else ended?.resolve(outcome)
    this.#next()
  }

  /** Fails all runs, also those to come. */
  close(error: AppError): void {
    this.#closedBy = error
    for (const queue of Object.values(this.#queued)) {
      for (const { reject } of queue) reject(error)
      queue.clear()
    }
    this.settle(error)
  }

  #next(): void {
    if (this.#current !== null) return
    for (const queue of [this.#queued.query, this.#queued.passage]) {
      for (const next of queue) {
        queue.delete(next)
        this.#current = next
        this.#start(next.run)
        return
      }
    }
  }
}

function full(): AppError {
  return new AppError('upstream_overloaded', 'Too many texts are queued for this model.', {
    retryAfterS,
  })
}
