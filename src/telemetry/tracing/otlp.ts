import { type HrTime, SpanKind as OtelKind, SpanStatusCode } from '@opentelemetry/api'
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import type { SpanKind } from '#lib/trace.ts'
import type { TracingConfig } from './config.ts'
import type { Export, ExportResult } from './export-queue.ts'
import type { RecordedSpan } from './recorded-span.ts'

/** Loaded only where traces are exported: the packages of OpenTelemetry. */

type ReadableSpan = Parameters<typeof JsonTraceSerializer.serializeRequest>[0][number]

export type OtlpTarget = Pick<TracingConfig, 'compression' | 'timeoutMs'> & {
  readonly url: string
  readonly format: 'protobuf' | 'json'
  readonly headers: Readonly<Record<string, string>>
  readonly resource: Readonly<Record<string, string>>
}

const contentTypes = { protobuf: 'application/x-protobuf', json: 'application/json' }
/** As the specification of OTLP lists them. */
const retryableStatuses = [429, 502, 503, 504]
const errorCharsMax = 200

/** Sends batches to a collector with OTLP over HTTP. */
export function createOtlpExport(target: OtlpTarget, send: typeof fetch): Export {
  const serializer = target.format === 'json' ? JsonTraceSerializer : ProtobufTraceSerializer
  const resource = resourceFromAttributes(target.resource)
  const scope = { name: 'sluice' }
  const headers = {
    ...target.headers,
    'content-type': contentTypes[target.format],
    ...(target.compression === 'gzip' ? { 'content-encoding': 'gzip' } : {}),
  }

  async function post(spans: readonly RecordedSpan[]): Promise<ExportResult> {
    const readable = spans.map((span): ReadableSpan => readableOf(span, { resource, scope }))
    const bytes = serializer.serializeRequest(readable) ?? new Uint8Array()
    const body = target.compression === 'gzip' ? Bun.gzipSync(Buffer.from(bytes)) : bytes
    const response = await send(target.url, {
      method: 'POST',
      headers,
      body: Buffer.from(body),
      signal: AbortSignal.timeout(target.timeoutMs),
      redirect: 'error',
    })
    const received = await response.bytes()
    if (!response.ok) {
      const { status } = response
      const reason = `The collector returned status ${status}.`
      return { kind: 'failed', isRetryable: retryableStatuses.includes(status), reason }
    }
    return { kind: 'sent', rejected: rejectedOf(received, spans.length) }
  }

  function rejectedOf(received: Uint8Array, sentCount: number): number {
    try {
      const { partialSuccess } = serializer.deserializeResponse(received)
      return Math.min(Number(partialSuccess?.rejectedSpans ?? 0), sentCount)
    } catch {
      // Accepted by status; some collectors respond with a text.
      return 0
    }
  }

  return (spans) =>
    post(spans).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message.slice(0, errorCharsMax) : 'unknown'
      return { kind: 'failed', isRetryable: true, reason }
    })
}

const kinds: Readonly<Record<SpanKind, OtelKind>> = {
  internal: OtelKind.INTERNAL,
  server: OtelKind.SERVER,
  client: OtelKind.CLIENT,
  consumer: OtelKind.CONSUMER,
}
const sampledFlag = 1

function readableOf(
  span: RecordedSpan,
  { resource, scope }: { resource: ReadableSpan['resource']; scope: { name: string } },
): ReadableSpan {
  const { place, failure, startedAtMs, endedAtMs, epochOffsetMs } = span
  const { traceId, parentId, isParentRemote } = place
  const parent = parentId === null ? null : { traceId, spanId: parentId, isRemote: isParentRemote }
  const context = { traceId, spanId: span.spanId, traceFlags: sampledFlag }
  return {
    name: span.name,
    kind: kinds[span.kind],
    spanContext: () => context,
    ...(parent === null ? {} : { parentSpanContext: { ...parent, traceFlags: sampledFlag } }),
    startTime: timeOf(startedAtMs + epochOffsetMs),
    endTime: timeOf(endedAtMs + epochOffsetMs),
    duration: timeOf(endedAtMs - startedAtMs),
    ended: true,
    status:
      failure === null
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: failure.message },
    attributes: attributesOf(span),
    links: [],
    events: [],
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

function attributesOf({ attributes, failure }: RecordedSpan): ReadableSpan['attributes'] {
  const own: ReadableSpan['attributes'] = {}
  for (const [name, value] of Object.entries(attributes)) {
    own[name] = typeof value === 'object' ? [...value] : value
  }
  if (failure !== null) own['error.type'] = failure.type
  return own
}

/** Seconds and nanoseconds. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)]
}
