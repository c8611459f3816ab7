import { type Foundation, module } from '#module.ts'
import { createAdmission } from './admission.ts'
import { createOutputEstimate } from './estimate.ts'
import { createMeters } from './meters.ts'
import { createPlans } from './plans.ts'

const clockMs = () => performance.now()

/** Limits of callers and models. */
export const limitsModule = module({
  name: 'limits',
  start({ config, metrics, now }: Foundation) {
    const refused = metrics.counter({
      name: 'sluice_limit_refusals_total',
      help: 'Calls refused by a limit, by whose limit it is and its name.',
      labels: ['scope', 'limit'],
    })
    const meters = createMeters({ isShared: false, clockMs })
    const plans = createPlans({ meters, scopes: () => config.limits })
    const limits = createAdmission({
      plans,
      outputs: createOutputEstimate(),
      leases: null,
      onRefused: ({ scope, name }) => refused.add(1, scope, name),
      clockMs,
      now,
    })
    metrics.gauge(
      { name: 'sluice_limit_meters', help: 'Limits in force in this process.' },
      meters.size,
    )
    return { services: { limits } }
  },
})
