import { type Foundation, module } from '#module.ts'
import { defineMetrics } from '#telemetry/metric-definition.ts'
import { certificateCheck } from './doctor.ts'
import { openServedCertificate } from './served-certificate.ts'

const tlsMetrics = defineMetrics({
  expires: {
    type: 'gauge',
    name: 'sluice_tls_certificate_expires_timestamp_seconds',
    help: 'When the served TLS certificate expires, in Unix time. Absent without TLS.',
    // The worker that could not replace its certificate counts.
    across: 'min',
  },
})

const millisPerSecond = 1_000

/** The certificate of the listener. */
export const tlsModule = module({
  name: 'tls',
  metrics: [tlsMetrics],
  doctor: certificateCheck,
  async start({ config, log, now, metrics }: Foundation) {
    const certificate = await openServedCertificate({ settings: config.tls, log, now })
    metrics.gauge(tlsMetrics.expires, () =>
      certificate === null ? [] : certificate.current().expiresAt.getTime() / millisPerSecond,
    )
    return {
      services: { certificate },
      // An unusable certificate is logged, and holds back no other change.
      async reload() {
        await certificate?.reload()
        return () => {}
      },
      close: () => certificate?.close(),
    }
  },
})
