import { Type } from '@sinclair/typebox'
import { section, text } from '#config/keys.ts'

/** The keys of metrics. */
export const metricsKeys = {
  metrics: section('Prometheus metrics on /metrics.', {
    token: Type.Optional(
      text(
        'Bearer token for /metrics. Without it, only callers on this machine may read metrics.',
        { env: 'SLUICE_METRICS_TOKEN', secret: true },
      ),
    ),
  }),
}
