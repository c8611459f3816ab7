import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  ann,
  endOf,
  message,
  nothing,
  objectOf,
  opened,
  type StoreFixture,
  segment,
  startStore,
} from './store-fixture.ts'

let fixture: StoreFixture

beforeAll(async () => {
  fixture = await startStore()
})
afterAll(() => fixture.close())

test('writers, deleters and sweepers of the same responses neither fail nor leave anything over', async () => {
  const { database, store } = fixture
  const responses = Array.from({ length: 120 }, () => opened({ runnerId: 'racer' }))
  await store.write({ ...nothing, opened: responses })
  const shuffled = (seed: number) =>
    responses.toSorted((left, right) =>
      Bun.hash(left.id + seed) > Bun.hash(right.id + seed) ? 1 : -1,
    )
  const writers = [1, 2, 3].map(async (seed) => {
    for (let round = 0; round < 8; round++) {
      const some = shuffled(seed * 100 + round).slice(0, 60)
      await store.write({
        opened: [],
        logged: some.map(({ id }) => ({ id, segment: segment(round * 10, round * 10 + seed) })),
        ended: some
          .slice(0, 8)
          .map(({ id }) =>
            endOf(objectOf(id, 'completed', [message('end')]), { segment: segment(1_000, 1_000) }),
          ),
      })
    }
  })
  const deleter = (async () => {
    for (const { id } of shuffled(7).slice(0, 60)) expect(await store.remove(ann, id)).toBe(true)
  })()
  const sweeper = (async () => {
    for (let round = 0; round < 8; round++) await store.sweep(fixture.now())
  })()
  const loser = (async () => {
    for (const { id } of shuffled(8).slice(0, 30)) {
      const last = (await store.progress([id]))[0]?.last ?? -1
      await store.endInProgress({ id, last }, { object: objectOf(id, 'failed'), segment: null })
    }
  })()
  await Promise.all([...writers, deleter, sweeper, loser])
  const deleted = shuffled(7).slice(0, 60)
  for (const { id } of deleted) expect(await store.find(ann, id)).toBeUndefined()
  expect(await store.progress(responses.map(({ id }) => id))).toHaveLength(60)
  const orphans = await database.drizzle.execute(`select 1 from response_log
    where not exists (select 1 from response where id = response_id)`)
  expect(orphans).toHaveLength(0)
})
