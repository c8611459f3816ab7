import type { Log } from '#telemetry/log.ts'
import type { MetricRegistry } from '#telemetry/metrics.ts'
import type { CallKind, CallRecord } from './open-call.ts'

const durationBoundsS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
const firstEventBoundsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const millisPerSecond = 1_000

const logMessages: Readonly<Record<CallKind, string>> = {
  generate: 'generation ended',
  embed: 'embedding ended',
  rerank: 'rerank ended',
  'count-tokens': 'token count ended',
}

/** Logs finished calls, and keeps the metrics of generations and of requests to upstreams. */
export function createCallReport({
  log,
  metrics,
}: {
  log: Pick<Log, 'info' | 'debug'>
  metrics: MetricRegistry
}) {
  const of = ['upstream', 'model']
  const ended = metrics.counter({
    name: 'sluice_generations_total',
    help: 'Finished generations.',
    labels: [...of, 'outcome'],
  })
  const retries = metrics.counter({
    name: 'sluice_upstream_retries_total',
    help: 'Retries of generations, by the last upstream.',
    labels: ['upstream'],
  })
  const hedges = metrics.counter({
    name: 'sluice_upstream_hedges_total',
    help: 'Generations with a second attempt beside the first one, by the upstream that gave output.',
    labels: ['upstream'],
  })
  const tokens = metrics.counter({
    name: 'sluice_tokens_total',
    help: 'Tokens as upstreams report them; cached tokens are included in input.',
    labels: [...of, 'kind'],
  })
  const durations = metrics.histogram({
    name: 'sluice_generation_duration_seconds',
    help: 'From the call to its end.',
    labels: of,
    bounds: durationBoundsS,
  })
  const firstEvents = metrics.histogram({
    name: 'sluice_first_event_seconds',
    help: 'From the call to the first output.',
    labels: of,
    bounds: firstEventBoundsS,
  })
  const answers = metrics.counter({
    name: 'sluice_upstream_requests_total',
    help: 'Requests to upstreams, by the class of the response status.',
    labels: ['upstream', 'answer'],
  })
  return {
    /** `answer`: the status class (`2xx` … `5xx`), or `none`. */
    upstreamAnswered: (upstream: string, answer: string) => answers.add(1, upstream, answer),

    callEnded(record: CallRecord) {
      const { error, target, usage, outcome, firstEventMs, durationMs } = record
      const upstream = target?.upstream.name ?? ''
      // Ingestion embeds thousands of batches; only generations are worth a line each by default.
      const write = record.kind === 'generate' ? log.info : log.debug
      write(logMessages[record.kind], {
        request_id: record.requestId,
        user_id: record.userId,
        key_id: record.keyId,
        model: record.model,
        upstream,
        outcome,
        ...(error === null ? {} : { kind: error.kind, reason: error.message, cause: error.cause }),
        retries: record.retries,
        ...(record.queuedMs === 0 ? {} : { queue_ms: Math.round(record.queuedMs) }),
        ...(record.hedged ? { hedged: true } : {}),
        first_event_ms: firstEventMs === null ? null : Math.round(firstEventMs),
        duration_ms: Math.round(durationMs),
        input_tokens: usage?.inputTokens ?? null,
        output_tokens: usage?.outputTokens ?? null,
      })
      if (record.kind !== 'generate') return
      // The label is the name at the upstream: a model has several names in requests.
      const model = target?.model ?? 'none'
      ended.add(1, upstream, model, outcome)
      durations.observe(durationMs / millisPerSecond, upstream, model)
      if (firstEventMs !== null) {
        firstEvents.observe(firstEventMs / millisPerSecond, upstream, model)
      }
      if (record.retries > 0) retries.add(record.retries, upstream)
      if (record.hedged) hedges.add(1, upstream)
      if (usage === null) return
      tokens.add(usage.inputTokens, upstream, model, 'input')
      tokens.add(usage.outputTokens, upstream, model, 'output')
      if (usage.cachedTokens > 0) tokens.add(usage.cachedTokens, upstream, model, 'cached')
    },
  }
}
