import { defineMetrics } from '#telemetry/metric-definition.ts'

const ofTarget = ['upstream', 'model'] as const
const ofQueue = ['model', 'priority'] as const

/** Bounds that the OpenTelemetry conventions for GenAI advise. */
const durationBoundsS = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
]
const firstTokenBoundsS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]
const perTokenBoundsS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const tokenBounds = [
  1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
  67_108_864,
]

/** The names of the OpenTelemetry conventions, with the labels of our other metrics. */
export const genAiMetrics = defineMetrics({
  operationDuration: {
    type: 'histogram',
    name: 'gen_ai_client_operation_duration_seconds',
    help: 'One attempt at an upstream, from its start to its end. `error_type` is empty for a success.',
    labels: ['gen_ai_operation_name', ...ofTarget, 'error_type'],
    bounds: durationBoundsS,
  },
  tokenUsage: {
    type: 'histogram',
    name: 'gen_ai_client_token_usage',
    help: 'Tokens of one call, as the upstream reports them.',
    labels: ['gen_ai_operation_name', ...ofTarget, 'gen_ai_token_type'],
    bounds: tokenBounds,
  },
  requestDuration: {
    type: 'histogram',
    name: 'gen_ai_server_request_duration_seconds',
    help: 'One call as its client sees it, with queue and retries. `error_type` is empty for a success.',
    labels: ['gen_ai_operation_name', ...ofTarget, 'error_type'],
    bounds: durationBoundsS,
  },
  timeToFirstToken: {
    type: 'histogram',
    name: 'gen_ai_server_time_to_first_token_seconds',
    help: 'From the call to its first output, of streamed generations.',
    labels: ofTarget,
    bounds: firstTokenBoundsS,
  },
  timePerOutputToken: {
    type: 'histogram',
    name: 'gen_ai_server_time_per_output_token_seconds',
    help: 'Mean time of each further token after the first one, of completed streamed generations.',
    labels: ofTarget,
    bounds: perTokenBoundsS,
  },
})

export const callMetrics = defineMetrics({
  running: {
    type: 'gauge',
    name: 'sluice_generations_running',
    help: 'Generations in progress.',
    across: 'sum',
  },
  ended: {
    type: 'counter',
    name: 'sluice_generations_total',
    help: 'Finished generations.',
    labels: [...ofTarget, 'outcome'],
  },
  retries: {
    type: 'counter',
    name: 'sluice_upstream_retries_total',
    help: 'Retries of generations, by the last upstream.',
    labels: ['upstream'],
  },
  hedges: {
    type: 'counter',
    name: 'sluice_upstream_hedges_total',
    help: 'Generations with a second attempt beside the first one, by the upstream that gave output.',
    labels: ['upstream'],
  },
  tokens: {
    type: 'counter',
    name: 'sluice_tokens_total',
    help: 'Tokens as upstreams report them; cached tokens are included in input.',
    labels: [...ofTarget, 'kind'],
  },
  duration: {
    type: 'histogram',
    name: 'sluice_generation_duration_seconds',
    help: 'From the call to its end, of generations, with bounds for long ones.',
    labels: ofTarget,
    bounds: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600],
  },
  firstEvent: {
    type: 'histogram',
    name: 'sluice_first_event_seconds',
    help: 'From the call to the first output, of generations, with bounds for long ones.',
    labels: ofTarget,
    bounds: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  },
  answers: {
    type: 'counter',
    name: 'sluice_upstream_requests_total',
    help: 'Requests to upstreams, by the class of the response status (`2xx` to `5xx`, or `none`).',
    labels: ['upstream', 'answer'],
  },
})

/** Only with `metrics.key_labels`. */
export const keyMetrics = defineMetrics({
  calls: {
    type: 'counter',
    name: 'sluice_key_calls_total',
    help: 'Finished calls by the id of the API key (`none`: a token), with `metrics.key_labels` only.',
    labels: ['key_id', 'outcome'],
  },
  tokens: {
    type: 'counter',
    name: 'sluice_key_tokens_total',
    help: 'Tokens by the id of the API key (`none`: a token), with `metrics.key_labels` only.',
    labels: ['key_id', 'kind'],
  },
})

export const queueMetrics = defineMetrics({
  waiting: {
    type: 'gauge',
    name: 'sluice_queue_waiting',
    help: 'Calls that wait for capacity.',
    across: 'sum',
    labels: ofQueue,
  },
  ended: {
    type: 'counter',
    name: 'sluice_queue_calls_total',
    help: 'Calls that had to wait for capacity of an upstream, or were refused.',
    labels: [...ofQueue, 'outcome'],
  },
  waits: {
    type: 'histogram',
    name: 'sluice_queue_wait_seconds',
    help: 'Wait of calls that got a slot.',
    labels: ofQueue,
    bounds: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600],
  },
})
