import type { Log } from '#telemetry/log.ts'
import type { GenerationJob } from './generate.ts'
import type { GenerationMetrics } from './generation-metrics.ts'
import type { GenerationRecord } from './record.ts'

/** A generation that is over, as a line of the log and in the figures. */
export function reportGeneration(
  { log, metrics }: { log: Pick<Log, 'info'>; metrics: Pick<GenerationMetrics, 'generationEnded'> },
  record: GenerationRecord,
  { targets }: Pick<GenerationJob, 'targets'>,
): void {
  log.info('generation ended', {
    request_id: record.requestId,
    model: record.model,
    upstream: record.upstream,
    outcome: record.outcome,
    ...(record.error === null
      ? {}
      : { kind: record.error.kind, reason: record.error.message, cause: record.error.cause }),
    retries: record.retries,
    first_event_ms: record.firstEventMs === null ? null : Math.round(record.firstEventMs),
    duration_ms: Math.round(record.durationMs),
    input_tokens: record.usage?.inputTokens ?? null,
    output_tokens: record.usage?.outputTokens ?? null,
  })
  // Callers may name a model in many ways; at its upstream it has one name.
  const target = targets.find(({ upstream }) => upstream.name === record.upstream)
  metrics.generationEnded({ ...record, model: target?.model ?? 'none' })
}
