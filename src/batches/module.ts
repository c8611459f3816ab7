import type { Auth } from '#auth/auth.ts'
import type { Files } from '#files/tree.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { repeat } from '#lib/repeat.ts'
import { type Foundation, module } from '#module.ts'
import type { Storage } from '#storage/storage.ts'
import type { Webhooks } from '#webhooks/service.ts'
import type { EventType } from '#webhooks/webhooks.ts'
import type { LineAnswers } from './batches.ts'
import { batchEndpoints } from './endpoints.ts'
import { createLineStore } from './line-store.ts'
import { batchMetrics } from './metrics.ts'
import { type Batches, createBatches } from './service.ts'
import { createBatchStore } from './store.ts'
import { type BatchWork, createBatchWork } from './work.ts'

type Needs = { auth: Auth; jobs: Jobs; files: Files; storage: Storage; webhooks: Webhooks }

const sweepEveryMs = 10_000
const dayMs = 86_400_000

/** Files of requests that run in the background. */
export const batchesModule = module({
  name: 'batches',
  tags: { Batches: 'Files of requests that run in the background.' },
  metrics: [batchMetrics],
  start(needs: Foundation & Needs) {
    const { config, database, log, metrics, now } = needs
    const store = createBatchStore(database)
    const lines = createLineStore(database)
    const answers: LineAnswers = new Map()
    const answered = metrics.counter(batchMetrics.lines)
    const ended = metrics.counter(batchMetrics.ended)
    const work = createBatchWork({
      ...needs,
      store,
      lines,
      answers,
      announceEnd: (transaction, { id, ownerId, status }) =>
        needs.webhooks.announce(transaction, {
          type: `batch.${status}` as EventType,
          ownerId,
          objectId: id,
          at: now(),
        }),
      onAnswered: ({ endpoint }, { outcome }) => answered.add(1, endpoint, outcome),
      onEnded: ({ endpoint, status }) => ended.add(1, endpoint, status),
    })
    metrics.gauge(batchMetrics.running, work.linesRunning)
    metrics.sharedGauge(batchMetrics.open, async () =>
      (await store.countOpen()).map(({ status, batches }) => [batches, status] as const),
    )
    metrics.sharedGauge(batchMetrics.pending, async () => [[await store.countPending()]] as const)
    const sweep = async () => {
      for (const id of await store.expire(now(), work.addBatchJob)) await work.announceClosed(id)
      const endedTo = new Date(now().getTime() - config.batches.keepDays * dayMs)
      while (await store.dropEnded(endedTo));
    }
    const sweeping = repeat(sweep, { everyMs: sweepEveryMs, log, failed: 'batch sweep failed' })
    return {
      services: {
        batches: createBatches({ ...needs, store, work }),
        batchWork: work,
        lineAnswers: answers,
      },
      async close() {
        work.drain()
        await sweeping.stop()
      },
    }
  },
  // Earlier modules have registered how lines are answered.
  started: ({ batchWork }: { batchWork: BatchWork }) => batchWork.process(),
  endpoints: (services: { batches: Batches; batchWork: BatchWork }) => batchEndpoints(services),
})
