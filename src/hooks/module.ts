import type { Generate } from '#inference/inference.ts'
import { type Foundation, module } from '#module.ts'
import { withHooks } from './guard.ts'
import { loadHooks } from './load.ts'
import { hookMetrics } from './metrics.ts'

/** Checks of requests and outputs by code of the operator. */
export const hooksModule = module({
  name: 'hooks',
  metrics: [hookMetrics],
  async start({ config, fetch, log, metrics }: Foundation) {
    const hooks = await loadHooks(config, { fetch })
    const checks = metrics.counter(hookMetrics.checks)
    const seconds = metrics.histogram(hookMetrics.seconds)
    return {
      services: {
        /** The same function without hooks. */
        guardGenerate: (generate: Generate): Generate =>
          hooks.length === 0
            ? generate
            : withHooks(generate, hooks, {
                log,
                onChecked({ hook, stage, outcome, ms }) {
                  checks.add(1, hook, stage, outcome)
                  seconds.observe(ms / 1_000, hook, stage)
                },
              }),
      },
    }
  },
})
