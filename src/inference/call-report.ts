import type { Log } from '#telemetry/log.ts'
import { createSeriesTree } from '#telemetry/metric-series.ts'
import type { Counter, MetricRegistry } from '#telemetry/metrics.ts'
import { callMetrics, genAiMetrics, keyMetrics } from './metrics.ts'
import type { CallKind, CallRecord } from './open-call.ts'
import type { OnAttemptEnded } from './routing/slot.ts'

const millisPerSecond = 1_000
/** Upstreams and models whose series are kept at hand. */
const targetsMax = 2_000

const logMessages: Readonly<Record<CallKind, string>> = {
  generate: 'generation ended',
  embed: 'embedding ended',
  rerank: 'rerank ended',
  speak: 'speech ended',
  'count-tokens': 'token count ended',
}

/** `gen_ai.operation.name`; counting tokens runs no model. */
const operations: Readonly<Record<CallKind, string | null>> = {
  generate: 'chat',
  embed: 'embeddings',
  rerank: 'rerank',
  speak: 'speak',
  'count-tokens': null,
}

type CallReportDeps = {
  readonly log: Pick<Log, 'info' | 'debug'>
  readonly metrics: MetricRegistry
  /** The most API keys with series of their own; null: keys are no label. */
  readonly keySeriesMax: number | null
}

/** Logs finished calls, and keeps the metrics of calls and of requests to upstreams. */
export function createCallReport({ log, metrics, keySeriesMax }: CallReportDeps) {
  const retries = metrics.counter(callMetrics.retries)
  const hedges = metrics.counter(callMetrics.hedges)
  const answers = metrics.counter(callMetrics.answers)
  const attempts = metrics.histogram(genAiMetrics.operationDuration)
  const requests = metrics.histogram(genAiMetrics.requestDuration)
  const tokenUsage = metrics.histogram(genAiMetrics.tokenUsage)
  const generationsOf = createGenerationSeries(metrics, tokenUsage)
  const countForKey = keySeriesMax === null ? null : createKeySeries(metrics, keySeriesMax)

  /** Of a call without a request, or that outlives it: background responses, ingestion, probes. */
  function logEnd(record: CallRecord, upstream: string): void {
    const { error, usage, outcome, firstEventMs, durationMs } = record
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
  }

  const attemptEnded: OnAttemptEnded = ({ target, kind, startedAtMs }, failure, nowMs) => {
    const operation = operations[kind]
    if (operation === null) return
    const { upstream, model } = target
    const seconds = (nowMs - startedAtMs) / millisPerSecond
    attempts.observe(seconds, operation, upstream.name, model, failure?.kind ?? '')
  }

  return {
    /** `answer`: the status class (`2xx` … `5xx`), or `none`. */
    upstreamAnswered: (upstream: string, answer: string) => answers.add(1, upstream, answer),
    attemptEnded,

    /** `isStreamed`: whether the client gets the output as it is generated. */
    callEnded(record: CallRecord, isStreamed: boolean) {
      const { target, usage } = record
      const upstream = target?.upstream.name ?? ''
      if (!record.isReported) logEnd(record, upstream)
      const operation = operations[record.kind]
      if (operation === null) return
      countForKey?.(record)
      // The label is the name at the upstream: a model has several names in requests.
      const model = target?.model ?? 'none'
      const seconds = record.durationMs / millisPerSecond
      requests.observe(seconds, operation, upstream, model, errorTypeOf(record))
      if (record.kind === 'generate') {
        generationsOf(upstream, model).ended(record, isStreamed)
        if (record.retries > 0) retries.add(record.retries, upstream)
        if (record.hedged) hedges.add(1, upstream)
      } else if (usage !== null) {
        tokenUsage.observe(usage.inputTokens, operation, upstream, model, 'input')
      }
    },
  }
}

function errorTypeOf({ error, outcome }: CallRecord): string {
  if (outcome === 'completed') return ''
  return error?.kind ?? 'client_closed'
}

/** The series of generations, found once per call instead of once per metric. */
function createGenerationSeries(
  metrics: MetricRegistry,
  tokenUsage: ReturnType<typeof metrics.histogram<typeof genAiMetrics.tokenUsage.labels>>,
) {
  const ended = metrics.counter(callMetrics.ended)
  const tokens = metrics.counter(callMetrics.tokens)
  const duration = metrics.histogram(callMetrics.duration)
  const firstEvent = metrics.histogram(callMetrics.firstEvent)
  const firstToken = metrics.histogram(genAiMetrics.timeToFirstToken)
  const perToken = metrics.histogram(genAiMetrics.timePerOutputToken)

  const create = (upstream: string, model: string) => {
    const of = [upstream, model] as const
    const outcomes = {
      completed: ended.at(...of, 'completed'),
      failed: ended.at(...of, 'failed'),
      cancelled: ended.at(...of, 'cancelled'),
    }
    const input = tokens.at(...of, 'input')
    const output = tokens.at(...of, 'output')
    const cached = tokens.at(...of, 'cached')
    const inputUsage = tokenUsage.at('chat', ...of, 'input')
    const outputUsage = tokenUsage.at('chat', ...of, 'output')
    const durations = duration.at(...of)
    const firstEvents = firstEvent.at(...of)
    const firstTokens = firstToken.at(...of)
    const perTokens = perToken.at(...of)
    return {
      ended({ outcome, durationMs, firstEventMs, usage }: CallRecord, isStreamed: boolean) {
        outcomes[outcome].total++
        durations.observe(durationMs / millisPerSecond)
        if (firstEventMs !== null) {
          firstEvents.observe(firstEventMs / millisPerSecond)
          if (isStreamed) firstTokens.observe(firstEventMs / millisPerSecond)
        }
        if (usage === null) return
        const { inputTokens, outputTokens, cachedTokens } = usage
        input.total += inputTokens
        output.total += outputTokens
        cached.total += cachedTokens
        inputUsage.observe(inputTokens)
        outputUsage.observe(outputTokens)
        const isTimed = isStreamed && outcome === 'completed' && firstEventMs !== null
        if (!isTimed || outputTokens < 2) return
        perTokens.observe((durationMs - firstEventMs) / millisPerSecond / (outputTokens - 1))
      },
    }
  }
  const known = createSeriesTree<ReturnType<typeof create>>({
    seriesMax: targetsMax,
    labelCount: 2,
    create: ([upstream = '', model = '']) => create(upstream, model),
    onOverflow() {},
  })
  return (upstream: string, model: string) => known.of([upstream, model])
}

function createKeySeries(metrics: MetricRegistry, keySeriesMax: number) {
  const bounded = { seriesMax: keySeriesMax }
  const calls: Counter<['key_id', 'outcome']> = metrics.counter({ ...keyMetrics.calls, ...bounded })
  const tokens: Counter<['key_id', 'kind']> = metrics.counter({ ...keyMetrics.tokens, ...bounded })
  return ({ keyId, outcome, usage }: CallRecord) => {
    const key = keyId ?? 'none'
    calls.add(1, key, outcome)
    if (usage === null) return
    tokens.add(usage.inputTokens, key, 'input')
    tokens.add(usage.outputTokens, key, 'output')
  }
}
