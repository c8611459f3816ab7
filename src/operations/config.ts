import { Type } from '@sinclair/typebox'
import { flag, section, text, whole } from '#config/keys.ts'

/** The keys of metrics. */
export const metricsKeys = {
  metrics: section('Prometheus metrics on /metrics.', {
    token: Type.Optional(
      text(
        'Bearer token for /metrics. Without it, only callers on this machine may read metrics.',
        { env: 'SLUICE_METRICS_TOKEN', secret: true },
      ),
    ),
    port: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 65_535,
        description:
          'Serves /metrics, /livez and /readyz on this port too, as plain HTTP from the supervisor: also while workers are overloaded or stopped.',
        env: 'SLUICE_METRICS_PORT',
      }),
    ),
    keyLabels: flag('Count calls and tokens of each API key, by its id.', false),
    keySeriesMax: whole(
      'Series of the metrics by API key; further keys are added up under `other`.',
      {
        default: 1_000,
        minimum: 1,
        maximum: 100_000,
      },
    ),
  }),
}
