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

export type OpenRecord = {
  startTry(upstream: string, retries: number): void
  output(batch: EventBatch): void
  fail(error: AppError): void
  close(): GenerationRecord
}

/** Collects the facts of one generation while it runs. */
export function openRecord(job: { requestId: string; model: string }): OpenRecord {
  const startedAt = performance.now()
  let upstream = ''
  let retries = 0
  let firstEventMs: number | null = null
  let error: AppError | null = null
  let completed = false
  let usage: Usage | null = null

  const outcome = () => {
    if (completed) return 'completed'
    return error === null || error.kind === 'client_closed' ? 'cancelled' : 'failed'
  }
  return {
    startTry(name, count) {
      upstream = name
      retries = count
    },
    output(batch) {
      firstEventMs ??= performance.now() - startedAt
      const last = batch.at(-1)
      if (last?.type !== 'finish') return
      completed = true
      usage = last.usage
    },
    fail(failure) {
      error = failure
    },
    close: () => ({
      ...job,
      upstream,
      outcome: outcome(),
      error,
      retries,
      usage,
      firstEventMs,
      durationMs: performance.now() - startedAt,
    }),
  }
}
