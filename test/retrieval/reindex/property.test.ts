import { expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { isEnded } from '#retrieval/reindex/reindex.ts'
import { collectionNames, createRandomActions, sumOf } from './random-actions.ts'
import { type ReindexHarness, startReindexHarness } from './reindex-harness.ts'

/**
 * Random uploads, changes, deletions, searches, reindexes with all actions, and crashes: at every
 * moment each file is found exactly once.
 */

const steps = 60
const seeds = [4, 5]
/** Steps wait for jobs, and jobs of crashed processes for their leases. */
const testMsMax = 240_000

for (const seed of seeds) {
  test(
    `no search misses, duplicates or invents a file during any interleaving (seed ${seed})`,
    async () => {
      const harness = await startReindexHarness()
      for (const name of collectionNames) await harness.collection(name)
      const actions = createRandomActions(harness, seed)
      try {
        for (let step = 0; step < steps; step++) {
          await actions.step()
          for (const id of actions.reindexIds.slice(-2)) await checkCounters(harness, id)
        }
        await harness.start()
        await bringToRest(harness)
        for (const name of collectionNames) await actions.oracle.checkAtRest(name)
        for (const id of actions.reindexIds) await checkCounters(harness, id)
        await expectNothingLeftOver(harness)
      } finally {
        await harness.close()
      }
    },
    testMsMax,
  )
}

const lookMs = 50
const looksMax = 1_000

async function checkCounters(harness: ReindexHarness, id: string): Promise<void> {
  const reindex = await harness.reindexes.find(id)
  expect(sumOf(reindex)).toBeLessThanOrEqual(reindex.counters.total)
  if (isEnded(reindex.status)) expect(sumOf(reindex)).toBe(reindex.counters.total)
}

/** Completes or cancels all open reindexes. */
async function bringToRest(harness: ReindexHarness): Promise<void> {
  const page = { limit: 100, order: 'desc', after: null, before: null } as const
  for (let looks = 0; ; looks++) {
    const { items } = await harness.reindexes.list(page, null)
    for (const { id, status } of items) {
      if (status === 'paused') await harness.act(id, 'resume')
      if (status === 'needs_attention') await harness.act(id, 'accept')
    }
    if (items.every(({ status }) => isEnded(status))) break
    if (looks === looksMax) throw new Error(`not at rest: ${JSON.stringify(items)}`)
    await Bun.sleep(lookMs)
  }
  await harness.settled()
}

/** Every index has a table and a user, and only rows of files that are needed there. */
async function expectNothingLeftOver({ database }: ReindexHarness): Promise<void> {
  const unused = await database.drizzle.execute(sql`
    select id, state from embedding_index where state in ('building', 'dropping')
      or (state = 'active' and id in (select target_index_id from reindex)
        and not exists (select 1 from collection where index_id = embedding_index.id))`)
  expect([...unused]).toEqual([])
  const tables = await database.drizzle.execute<{ name: string }>(sql`
    select relname as name from pg_class where relkind = 'r' and relname like 'chunk\_%'
      and not exists (select 1 from embedding_index where relname = 'chunk_' || id)`)
  expect([...tables]).toEqual([])
}
