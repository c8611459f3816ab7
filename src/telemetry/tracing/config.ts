import { Type } from '@sinclair/typebox'
import { choice, section, text, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'

/** The keys of traces. Each has the standard variable of OpenTelemetry, where there is one. */
export const tracingKeys = {
  tracing: section('Traces, exported with OTLP over HTTP. Without an endpoint there are none.', {
    endpoint: Type.Optional(
      text('Base URL of a collector, such as http://127.0.0.1:4318; /v1/traces is appended.', {
        env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      }),
    ),
    tracesEndpoint: Type.Optional(
      text('Complete URL for traces; it precedes endpoint.', {
        env: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
      }),
    ),
    headers: Type.Optional(
      text('Headers of exports: name=value, separated by commas, percent-encoded.', {
        env: 'OTEL_EXPORTER_OTLP_HEADERS',
        secret: true,
      }),
    ),
    tracesHeaders: Type.Optional(
      text('More such headers; they precede headers.', {
        env: 'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
        secret: true,
      }),
    ),
    protocol: text('http/protobuf or http/json; with grpc there are no traces.', {
      default: 'http/protobuf',
      env: 'OTEL_EXPORTER_OTLP_PROTOCOL',
    }),
    compression: choice('Compression of exports.', ['none', 'gzip'], {
      env: 'OTEL_EXPORTER_OTLP_COMPRESSION',
    }),
    timeoutMs: whole('Time of one export.', {
      default: 10_000,
      minimum: 100,
      env: 'OTEL_EXPORTER_OTLP_TIMEOUT',
    }),
    exporter: text('otlp, or none for no traces.', {
      default: 'otlp',
      env: 'OTEL_TRACES_EXPORTER',
    }),
    sdkDisabled: text('true: no traces, whatever else is set.', {
      default: 'false',
      env: 'OTEL_SDK_DISABLED',
    }),
    serviceName: text('The name of this service in traces.', {
      default: 'sluice',
      env: 'OTEL_SERVICE_NAME',
    }),
    resourceAttributes: Type.Optional(
      text('Attributes of every span: name=value, separated by commas, percent-encoded.', {
        env: 'OTEL_RESOURCE_ATTRIBUTES',
      }),
    ),
    sampler: choice(
      'Which traces are kept. The parentbased ones follow the decision of the caller, if it has made one.',
      [
        'parentbased_always_on',
        'parentbased_traceidratio',
        'parentbased_always_off',
        'always_on',
        'always_off',
        'traceidratio',
      ],
      { env: 'OTEL_TRACES_SAMPLER' },
    ),
    samplerArg: Type.Number({
      description: 'Share of the traces that the traceidratio samplers keep.',
      default: 1,
      minimum: 0,
      maximum: 1,
      env: 'OTEL_TRACES_SAMPLER_ARG',
    }),
    content: Type.Boolean({
      description: 'Whether spans contain prompts, outputs, and arguments and results of tools.',
      default: false,
      env: 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT',
    }),
    contentCharsMax: whole('The most characters of one such attribute.', {
      default: 4_096,
      minimum: 16,
      maximum: 1_048_576,
    }),
    contentRedact: Type.Array(text('A regular expression.'), {
      description:
        'Regular expressions of what is replaced by [redacted] in contents; credentials always are.',
      default: [],
    }),
    queueSpansMax: whole('Spans that wait to be exported; more are dropped and counted.', {
      default: 2_048,
      minimum: 1,
      env: 'OTEL_BSP_MAX_QUEUE_SIZE',
    }),
    batchSpansMax: whole('Spans of one export.', {
      default: 512,
      minimum: 1,
      env: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
    }),
    batchDelayMs: whole('How long a span waits for others.', {
      default: 5_000,
      minimum: 1,
      env: 'OTEL_BSP_SCHEDULE_DELAY',
    }),
  }),
}

export type TracingConfig = Config['tracing']

export function* tracingFaults({ tracing }: Config): Generator<string> {
  for (const [key, url] of [
    ['endpoint (OTEL_EXPORTER_OTLP_ENDPOINT)', tracing.endpoint],
    ['traces_endpoint (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)', tracing.tracesEndpoint],
  ] as const) {
    if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? '')) continue
    yield `tracing.${key}: expected an http or https URL.`
  }
  for (const [at, pattern] of tracing.contentRedact.entries()) {
    try {
      new RegExp(pattern)
    } catch {
      yield `tracing.content_redact.${at}: not a regular expression.`
    }
  }
}
