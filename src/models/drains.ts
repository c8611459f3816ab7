import { actorOf } from '#audit/audit.ts'
import type { Audit } from '#audit/store.ts'
import type { Router } from '#inference/routing/router.ts'
import { repeat } from '#lib/repeat.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Log } from '#telemetry/log.ts'
import { createDrainStore, type Drain, type DrainDatabase } from './drain-store.ts'

export type Drains = Awaited<ReturnType<typeof createDrains>>

/** Polling covers lost notifications: a change acts in every process within this time. */
const pollEveryMs = 900

/** Upstreams that administrators take out of service, in every process on the same database. */
export async function createDrains({
  database,
  router,
  audit,
  log,
  now,
}: {
  database: DrainDatabase
  router: Router
  audit: Pick<Audit, 'record'>
  log: Pick<Log, 'info' | 'warn'>
  now: () => Date
}) {
  const store = createDrainStore(database)
  let drains: ReadonlyMap<string, Drain> = new Map()
  const adopt = async () => {
    drains = new Map((await store.list()).map((drain) => [drain.name, drain]))
    for (const name of router.drain(new Set(drains.keys()))) {
      log.info(drains.has(name) ? 'upstream is draining' : 'upstream is back in service', {
        upstream: name,
      })
    }
  }
  const polling = repeat(adopt, {
    everyMs: pollEveryMs,
    log,
    failed: 'upstream drains poll failed',
  })
  await store.follow(polling.soon)
  await adopt()

  const recording = (context: RequestContext, name: string, action: 'drain' | 'resume') => {
    const isDrained = action === 'drain'
    return (transaction: Parameters<Audit['record']>[1]) =>
      audit.record(
        {
          actor: actorOf(context),
          action: `upstream.${action}`,
          resource: { type: 'upstream', id: name },
          changes: { before: { draining: !isDrained }, after: { draining: isDrained } },
        },
        transaction,
      )
  }

  return {
    /** When it was taken out of service; undefined: it is in service. */
    of: (name: string): Drain | undefined => drains.get(name),

    /** Sends it no further requests. Those in progress end normally. */
    async drain(context: RequestContext, name: string): Promise<void> {
      const drain = { name, drainedBy: context.principal.userId, drainedAt: now() }
      await store.add(drain, recording(context, name, 'drain'))
      await adopt()
    },

    /** Ends a drain. */
    async resume(context: RequestContext, name: string): Promise<void> {
      await store.remove(name, recording(context, name, 'resume'))
      await adopt()
    },
    close: polling.stop,
  }
}
