import type { ContentRules } from '#lib/trace.ts'
import { type Log, redact } from '#telemetry/log.ts'
import { defineMetrics } from '#telemetry/metric-definition.ts'
import type { MetricRegistry } from '#telemetry/metrics.ts'
import type { TracingConfig } from './config.ts'
import { createExportQueue } from './export-queue.ts'
import { createSampler } from './sampler.ts'
import { createTracer, type Tracer } from './tracer.ts'

export const tracingMetrics = defineMetrics({
  spans: {
    type: 'counter',
    name: 'sluice_trace_spans_total',
    help: 'Spans by what became of them: exported, rejected by the collector, failed (the collector is unreachable or refuses), queue_full.',
    labels: ['outcome'],
  },
  waiting: {
    type: 'gauge',
    across: 'sum',
    name: 'sluice_trace_spans_waiting',
    help: 'Spans that wait to be exported.',
  },
})

/** At most one warning per outage and minute. */
const warnEveryMs = 60_000
const flushMsMax = 5_000

export type Tracing = {
  readonly tracer: Tracer
  /** Exports what waits, within a few seconds. */
  close(): Promise<void>
}

/** Null: no traces are configured, and nothing of OpenTelemetry is loaded. */
export async function startTracing({
  config,
  log,
  metrics,
  version,
  now,
  fetch: send,
}: {
  config: TracingConfig
  log: Pick<Log, 'warn' | 'debug'>
  metrics: MetricRegistry
  version: string
  now: () => Date
  fetch: typeof fetch
}): Promise<Tracing | null> {
  const url = tracesUrlOf(config)
  const isOff = config.exporter === 'none' || config.sdkDisabled.toLowerCase() === 'true'
  if (url === null || isOff) return null
  const format = formatOf(config.protocol)
  if (format === null) {
    log.warn('traces are off: protocol not supported', { protocol: config.protocol })
    return null
  }
  const { createOtlpExport } = await import('./otlp.ts')
  const spans = metrics.counter(tracingMetrics.spans)
  let warnedAtMs = Number.NEGATIVE_INFINITY
  const queue = createExportQueue(
    createOtlpExport(
      {
        url,
        format,
        compression: config.compression,
        timeoutMs: config.timeoutMs,
        headers: { ...readPairs(config.headers), ...readPairs(config.tracesHeaders) },
        resource: {
          'service.version': version,
          ...readPairs(config.resourceAttributes),
          'service.name': config.serviceName,
          'process.pid': String(process.pid),
        },
      },
      send,
    ),
    config,
    {
      count: (outcome, count) => spans.add(count, outcome),
      failed(reason) {
        const nowMs = performance.now()
        if (nowMs - warnedAtMs < warnEveryMs) return
        warnedAtMs = nowMs
        log.warn('trace export failed', { reason })
      },
    },
  )
  metrics.gauge(tracingMetrics.waiting, queue.waiting)
  return {
    tracer: createTracer(createSampler(config), {
      content: config.content ? contentRules(config) : null,
      now,
      ended: queue.ended,
    }),
    async close() {
      await queue.flush(flushMsMax)
      queue.close()
    },
  }
}

function contentRules({ contentCharsMax, contentRedact }: TracingConfig): ContentRules {
  const patterns = contentRedact.map((pattern) => new RegExp(pattern, 'g'))
  return {
    charsMax: contentCharsMax,
    redact: (text) =>
      patterns.reduce((rest, pattern) => rest.replace(pattern, '[redacted]'), redact(text)),
  }
}

function tracesUrlOf({ endpoint, tracesEndpoint }: TracingConfig): string | null {
  if (tracesEndpoint !== undefined) return tracesEndpoint
  return endpoint === undefined ? null : `${endpoint.replace(/\/+$/, '')}/v1/traces`
}

function formatOf(protocol: string): 'protobuf' | 'json' | null {
  if (protocol === 'http/protobuf') return 'protobuf'
  return protocol === 'http/json' ? 'json' : null
}

/** `a=1,b=two%20words`; parts without a name are skipped. */
function readPairs(text: string | undefined): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (const pair of (text ?? '').split(',')) {
    const at = pair.indexOf('=')
    if (at < 1) continue
    const value = pair.slice(at + 1).trim()
    pairs[pair.slice(0, at).trim()] = decoded(value)
  }
  return pairs
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
