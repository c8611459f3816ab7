import { expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { isEnded } from '#retrieval/reindex/reindex.ts'
import { collectionNames, createRandomCourse, sumOf } from './random-course.ts'
import { type ReindexWorld, startReindexWorld } from './reindex-world.ts'

/**
 * Uploads, changes, deletions, searches, reindexes and all that can be done to them, and processes
 * that die, in random order: at every moment each file is found once.
 */

const steps = 60
const seeds = [4, 5]
/** Steps wait for each other's work, and processes that died for their successors. */
const testMsMax = 240_000

for (const seed of seeds) {
  test(
    `no search misses, doubles or invents a file, whatever happens (seed ${seed})`,
    async () => {
      const world = await startReindexWorld()
      for (const name of collectionNames) await world.collection(name)
      const course = createRandomCourse(world, seed)
      try {
        for (let step = 0; step < steps; step++) {
          await course.step()
          for (const id of course.reindexIds.slice(-2)) await checkCounters(world, id)
        }
        await world.start()
        await bringToRest(world)
        for (const name of collectionNames) await course.oracle.checkAtRest(name)
        for (const id of course.reindexIds) await checkCounters(world, id)
        await expectNothingLeftOver(world)
      } finally {
        await world.close()
      }
    },
    testMsMax,
  )
}

const lookMs = 50
const looksMax = 1_000

async function checkCounters(world: ReindexWorld, id: string): Promise<void> {
  const reindex = await world.reindexes.find(id)
  expect(sumOf(reindex)).toBeLessThanOrEqual(reindex.counters.total)
  if (isEnded(reindex.status)) expect(sumOf(reindex)).toBe(reindex.counters.total)
}

/** Lets everything that was begun come to its end. */
async function bringToRest(world: ReindexWorld): Promise<void> {
  const page = { limit: 100, order: 'desc', after: null, before: null } as const
  for (let looks = 0; ; looks++) {
    const { items } = await world.reindexes.list(page, null)
    for (const { id, status } of items) {
      if (status === 'paused') await world.reindexes.act(id, 'resume')
      if (status === 'needs_attention') await world.reindexes.act(id, 'accept')
    }
    if (items.every(({ status }) => isEnded(status))) break
    if (looks === looksMax) throw new Error(`not at rest: ${JSON.stringify(items)}`)
    await Bun.sleep(lookMs)
  }
  await world.settled()
}

/** Each index there is has its table, its use, and rows of files that somebody wants there. */
async function expectNothingLeftOver({ database }: ReindexWorld): Promise<void> {
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
