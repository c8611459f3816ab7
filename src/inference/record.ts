import type { AppError } from '#lib/errors.ts'
import type { EventBatch, Usage } from './events.ts'

/** What is known when a generation is over, made exactly once for each. */
export type GenerationRecord = {
  requestId: string
  model: string
  upstream: string
  outcome: 'completed' | 'failed' | 'cancelled'
  error: AppError | null
  retries: number
  usage: Usage | null
  /** From the call to the first output; null where there was none. */
  firstEventMs: number | null
  durationMs: number
}

/** Collects the facts of one generation while it runs. */
export class OpenRecord {
  readonly #startedAt = performance.now()
  readonly #job: { requestId: string; model: string }
  #upstream = ''
  #retries = 0
  #firstEventMs: number | null = null
  #error: AppError | null = null
  #completed = false
  #usage: Usage | null = null

  constructor(job: { requestId: string; model: string }) {
    this.#job = job
  }

  startTry(upstream: string, retries: number) {
    this.#upstream = upstream
    this.#retries = retries
  }

  output(batch: EventBatch) {
    this.#firstEventMs ??= performance.now() - this.#startedAt
    const last = batch.at(-1)
    if (last?.type !== 'finish') return
    this.#completed = true
    this.#usage = last.usage
  }

  fail(error: AppError) {
    this.#error = error
  }

  close(): GenerationRecord {
    return {
      ...this.#job,
      upstream: this.#upstream,
      outcome: this.#outcome(),
      error: this.#error,
      retries: this.#retries,
      usage: this.#usage,
      firstEventMs: this.#firstEventMs,
      durationMs: performance.now() - this.#startedAt,
    }
  }

  #outcome(): GenerationRecord['outcome'] {
    if (this.#completed) return 'completed'
    return this.#error === null || this.#error.kind === 'client_closed' ? 'cancelled' : 'failed'
  }
}
