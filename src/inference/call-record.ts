import type { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Log } from '#telemetry/log.ts'
import type { EventBatch, Usage } from './events.ts'
import type { GenerationMetrics } from './generation-metrics.ts'
import type { Target } from './upstream.ts'

export type CallKind = 'generate' | 'embed' | 'rerank' | 'count-tokens'

/** The facts of one finished call to a model. Every call is settled with exactly one. */
export type CallRecord = {
  readonly kind: CallKind
  readonly requestId: string
  readonly userId: string
  readonly keyId: string | null
  /** The model name of the request. */
  readonly model: string
  /** The last target that was tried; null when the call was not admitted to any. */
  readonly target: Target | null
  readonly outcome: 'completed' | 'failed' | 'cancelled'
  readonly error: AppError | null
  readonly retries: number
  readonly usage: Usage | null
  /** From the call to its first output; null without output. */
  readonly firstEventMs: number | null
  readonly durationMs: number
}

/** Collects the facts of a running call. */
export class OpenCallRecord {
  readonly #kind: CallKind
  readonly #context: RequestContext
  readonly #model: string
  readonly #startedAt = performance.now()
  #target: Target | null = null
  #retries = 0
  #firstEventMs: number | null = null
  #error: AppError | null = null
  #completed = false
  #usage: Usage | null = null

  constructor(kind: CallKind, context: RequestContext, model: string) {
    this.#kind = kind
    this.#context = context
    this.#model = model
  }

  startAttempt(target: Target, retries: number) {
    this.#target = target
    this.#retries = retries
  }

  output(batch: EventBatch) {
    this.#firstEventMs ??= performance.now() - this.#startedAt
    const last = batch.at(-1)
    if (last?.type === 'finish') this.complete(last.usage)
  }

  complete(usage: Usage | null) {
    this.#completed = true
    this.#usage = usage
  }

  fail(error: AppError) {
    this.#error = error
  }

  close(): CallRecord {
    const { requestId, principal, keyId } = this.#context
    return {
      kind: this.#kind,
      requestId,
      userId: principal.userId,
      keyId,
      model: this.#model,
      target: this.#target,
      outcome: this.#outcome(),
      error: this.#error,
      retries: this.#retries,
      usage: this.#usage,
      firstEventMs: this.#firstEventMs,
      durationMs: performance.now() - this.#startedAt,
    }
  }

  #outcome(): CallRecord['outcome'] {
    if (this.#completed) return 'completed'
    return this.#error === null || this.#error.kind === 'client_closed' ? 'cancelled' : 'failed'
  }
}

const logMessages: Readonly<Record<CallKind, string>> = {
  generate: 'generation ended',
  embed: 'embedding ended',
  rerank: 'rerank ended',
  'count-tokens': 'token count ended',
}

/** Logs a finished call and updates the metrics of generations. */
export function reportCall(
  {
    log,
    metrics,
  }: { log: Pick<Log, 'info' | 'debug'>; metrics: Pick<GenerationMetrics, 'generationEnded'> },
  record: CallRecord,
): void {
  const { error, target, usage } = record
  const upstream = target?.upstream.name ?? ''
  // Ingestion embeds thousands of batches; only generations are worth a line each by default.
  const write = record.kind === 'generate' ? log.info : log.debug
  write(logMessages[record.kind], {
    request_id: record.requestId,
    user_id: record.userId,
    key_id: record.keyId,
    model: record.model,
    upstream,
    outcome: record.outcome,
    ...(error === null ? {} : { kind: error.kind, reason: error.message, cause: error.cause }),
    retries: record.retries,
    first_event_ms: record.firstEventMs === null ? null : Math.round(record.firstEventMs),
    duration_ms: Math.round(record.durationMs),
    input_tokens: usage?.inputTokens ?? null,
    output_tokens: usage?.outputTokens ?? null,
  })
  // The label is the name at the upstream: a model has several names in requests.
  const model = target?.model ?? 'none'
  if (record.kind === 'generate') metrics.generationEnded({ ...record, upstream, model })
}
