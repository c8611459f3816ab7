import { eventually } from './eventually.ts'

/** A span as the exporter sent it. */
type ReceivedSpan = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly statusCode: number
}

export type OtlpReceiver = {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  readonly exports: readonly { readonly headers: Headers; readonly bytes: Uint8Array }[]
  /** The variables of a gateway that exports to it, at once and as JSON. */
  readonly environment: Record<string, string>
  /** The status of the next exports. */
  status: number
  /** Resolves with the spans of these names, in the order of `names`. */
  named(...names: readonly string[]): Promise<ReceivedSpan[]>
  stop(): Promise<void>
}

type WireValue = Readonly<Record<string, unknown>>
type WireSpan = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes?: { key: string; value: WireValue }[]
  status?: { code?: number }
}
type WireExport = {
  resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[]
}

/** A receiver of OTLP over HTTP, such as a collector has. It decodes JSON. */
export function startOtlpReceiver(): OtlpReceiver {
  const spans: ReceivedSpan[] = []
  const exports: { headers: Headers; bytes: Uint8Array }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { headers } = request
      const bytes = await request.bytes()
      exports.push({ headers, bytes })
      if (receiver.status !== 200) return new Response(null, { status: receiver.status })
      if (headers.get('content-type') === 'application/json') {
        const received: WireExport = JSON.parse(Buffer.from(bytes).toString())
        spans.push(...spansOf(received))
        return Response.json({})
      }
      return new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
    },
  })
  const url = server.url.href.replace(/\/$/, '')
  const receiver: OtlpReceiver = {
    url,
    spans,
    exports,
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '10',
    },
    status: 200,
    async named(...names) {
      const find = () => names.map((name) => spans.find((span) => span.name === name))
      await eventually(`the spans ${names.join(', ')} arrive`, () =>
        find().every((span) => span !== undefined),
      )
      return find().filter((span) => span !== undefined)
    },
    stop: () => server.stop(true),
  }
  return receiver
}

function spansOf({ resourceSpans }: WireExport): ReceivedSpan[] {
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap((scope) => scope.spans)
    .map((span) => ({
      traceId: span.traceId,
      spanId: span.spanId,
      parentSpanId: span.parentSpanId ?? '',
      name: span.name,
      kind: span.kind,
      attributes: Object.fromEntries(
        (span.attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]]),
      ),
      statusCode: span.status?.code ?? 0,
    }))
}
