import { Type } from '@sinclair/typebox'
import { section, text } from './keys.ts'

/** The keys about figures for monitoring. */
export const metricsKeys = {
  metrics: section('The figures of /metrics.', {
    token: Type.Optional(
      text(
        'The bearer token that whoever asks for them sends; without it they are for callers on this machine alone.',
        { env: 'SLUICE_METRICS_TOKEN', secret: true },
      ),
    ),
  }),
}
