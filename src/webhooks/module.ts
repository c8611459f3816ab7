import type { Auth } from '#auth/auth.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { repeat } from '#lib/repeat.ts'
import { type Foundation, module } from '#module.ts'
import { resolveHost } from '#outbound/resolve.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { processDeliveries } from './deliver.ts'
import { createDeliveryStore } from './delivery-store.ts'
import { webhookEndpoints } from './endpoints.ts'
import { webhookMetrics } from './metrics.ts'
import { createWebhooks, type Webhooks } from './service.ts'
import { createWebhookStore } from './store.ts'

/** How long the end of a background response may wait to be announced. */
const scanEveryMs = 2_000
const sweepEveryMs = 600_000
const dayMs = 86_400_000

/** Signed events of ended batches and background responses. */
export const webhooksModule = module({
  name: 'webhooks',
  tags: { Webhooks: 'Events that are sent when batches and background responses end.' },
  metrics: [webhookMetrics],
  start(needs: Foundation & { auth: Auth; jobs: Jobs; sealer: Sealer }) {
    const { config, database, jobs, log, metrics, now } = needs
    const store = createWebhookStore(database)
    const deliveries = createDeliveryStore(database)
    const attempts = metrics.counter(webhookMetrics.attempts)
    const deps = { ...needs, store, deliveries, resolve: resolveHost }
    const webhooks = createWebhooks(deps)
    const onAttempted = (outcome: string) => attempts.add(1, outcome)
    const processor = processDeliveries({ ...deps, onAttempted }, jobs)
    const scanning = repeat(webhooks.announceResponses, {
      everyMs: scanEveryMs,
      log,
      failed: 'search for ended responses failed',
    })
    const sweep = async () => {
      const endedTo = new Date(now().getTime() - config.webhooks.keepDays * dayMs)
      while (await deliveries.dropEnded(endedTo));
    }
    const sweeping = repeat(sweep, { everyMs: sweepEveryMs, log, failed: 'webhook sweep failed' })
    return {
      services: { webhooks },
      async close() {
        processor.stop()
        await Promise.all([scanning.stop(), sweeping.stop()])
      },
    }
  },
  endpoints: (services: { webhooks: Webhooks }) => webhookEndpoints(services),
})
