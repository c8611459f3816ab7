import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { SQL } from 'drizzle-orm'
import {
  addEnded,
  ann,
  bob,
  enqueue,
  message,
  nothing,
  opened,
  queued,
  type StoreFixture,
  segment,
  startStore,
} from './store-fixture.ts'

let fixture: StoreFixture

beforeAll(async () => {
  fixture = await startStore()
})
afterAll(() => fixture.close())

describe('a log', () => {
  test('is read from any frame, including the whole segment that spans it', async () => {
    const { store } = fixture
    const { id } = opened()
    const segments = [segment(0, 2), segment(3, 3), segment(4, 9), segment(10, 12)]
    await store.write({
      ...nothing,
      opened: [opened({ id })],
      logged: segments.map((each) => ({ id, segment: each })),
    })
    const firsts = async (after: number, charsMax = 10_000) =>
      (await store.readLog(id, after, charsMax)).map(({ first }) => first)
    expect(await firsts(-1)).toEqual([0, 3, 4, 10])
    expect(await firsts(0)).toEqual([0, 3, 4, 10])
    expect(await firsts(2)).toEqual([3, 4, 10])
    expect(await firsts(3)).toEqual([4, 10])
    expect(await firsts(8)).toEqual([4, 10])
    expect(await firsts(11)).toEqual([10])
    expect(await firsts(12)).toEqual([])
    expect(await firsts(1e9)).toEqual([])
    // At least one segment, up to the requested size.
    expect(await firsts(-1, 1)).toEqual([0])
    expect(await firsts(3, segments[2]?.frames.length)).toEqual([4])
    expect(await store.readLog(id, 9, 10_000)).toEqual(segments.slice(3))
  })

  test('with thousands of segments is read to its end', async () => {
    const { store } = fixture
    const { id } = opened()
    const logged = Array.from({ length: 2_500 }, (_, at) => ({ id, segment: segment(at, at) }))
    await store.write({ ...nothing, opened: [opened({ id })], logged })
    let after = -1
    for (let round = 0; round < 100; round++) {
      const read = await store.readLog(id, after, 1_000_000)
      if (read.length === 0) break
      expect(read[0]?.first).toBe(after + 1)
      after = read.at(-1)?.last ?? after
    }
    expect(after).toBe(2_499)
  })

  test('reports its progress', async () => {
    const { store } = fixture
    const [empty, running, deleted] = [opened(), opened(), opened()]
    await store.write({
      ...nothing,
      opened: [empty, running, deleted],
      logged: [running, deleted].map(({ id }) => ({ id, segment: segment(0, 7) })),
    })
    await store.remove(ann, deleted.id)
    const progress = await store.progress([empty, running, deleted].map(({ id }) => id))
    expect(progress.toSorted((left, right) => left.last - right.last)).toEqual([
      { id: empty.id, status: 'in_progress', last: -1 },
      { id: running.id, status: 'in_progress', last: 7 },
    ])
    expect(await store.progress([])).toEqual([])
  })
})

describe('a sweep', () => {
  const dayMs = 86_400_000

  test('deletes only the logs of responses that ended long ago', async () => {
    const { store } = fixture
    const [over, running] = [await addEnded(store), opened()]
    await store.write({
      ...nothing,
      opened: [running],
      logged: [{ id: running.id, segment: segment(0, 3) }],
    })
    await store.sweep(fixture.now())
    expect((await store.find(ann, over.id))?.log.last).toBe(3)
    fixture.pass(2 * dayMs)
    const recent = await addEnded(store)
    await store.sweep(fixture.now())
    expect((await store.find(ann, over.id))?.log).toMatchObject({ status: 'completed', last: -1 })
    expect((await store.find(ann, over.id))?.object.output).toHaveLength(1)
    expect(await store.readLog(over.id, -1, 1_000)).toEqual([])
    expect((await store.find(ann, running.id))?.log.last).toBe(3)
    expect((await store.find(ann, recent.id))?.log.last).toBe(3)
  })

  test('deletes expired responses that are not running', async () => {
    const { database, store } = fixture
    const input = () => [message('x', 'msg_swept')]
    const old = await addEnded(store, { input: input() })
    const waiting = queued()
    await enqueue(store, waiting)
    const running = opened()
    await store.write({ ...nothing, opened: [running] })
    fixture.pass(31 * dayMs)
    const recent = await addEnded(store)
    await Promise.all([store.sweep(fixture.now()), store.sweep(fixture.now())])
    const rows = await database.drizzle.execute('select id from response')
    const left = rows.map((row) => row['id'])
    expect(left).not.toContain(old.id)
    expect(left).not.toContain(waiting.id)
    expect(left).toContain(running.id)
    expect(left).toContain(recent.id)
    const items = await database.drizzle.execute(
      "select 1 from response_item where item_id = 'msg_swept'",
    )
    expect(items).toHaveLength(0)
    expect(await store.find(ann, running.id)).toBeDefined()
  })

  test('keeps the newest responses of each owner, with concurrent sweeps', async () => {
    const small = fixture.storeWith({ perOwnerMax: 3 })
    const addMany = async (ownerId: string, count: number) => {
      const ids: string[] = []
      for (let at = 0; at < count; at++) {
        const createdAt = new Date(fixture.now().getTime() + at)
        ids.push((await addEnded(small, { ownerId, createdAt })).id)
      }
      return ids
    }
    const ofCy = '00000000-0000-8000-8000-00000000000c'
    const [manyIds, fewIds] = [await addMany(ofCy, 8), await addMany(bob, 2)]
    await Promise.all(Array.from({ length: 4 }, () => small.sweep(fixture.now())))
    const isThere = async (ownerId: string, ids: readonly string[]) =>
      Promise.all(ids.map(async (id) => (await small.find(ownerId, id)) !== undefined))
    expect(await isThere(ofCy, manyIds)).toEqual([
      ...Array.from({ length: 5 }, () => false),
      ...Array.from({ length: 3 }, () => true),
    ])
    expect(await isThere(bob, fewIds)).toEqual([true, true])
  })

  test('deletes more than one statement can', async () => {
    const { database, store } = fixture
    fixture.pass(31 * dayMs)
    await store.sweep(fixture.now())
    const head = { ownerId: bob, runnerId: 'x' }
    const many = Array.from({ length: 700 }, () => opened(head))
    await store.write({
      opened: many,
      logged: [],
      ended: many.map((response) => ({
        ...response,
        object: { ...response.object, status: 'completed' as const },
        segment: segment(0, 0),
      })),
    })
    fixture.pass(2 * dayMs)
    await store.sweep(fixture.now())
    expect(await database.drizzle.execute('select 1 from response_log where first = 0')).toEqual(
      await database.drizzle.execute(
        `select 1 from response_log join response on response.id = response_id
         where first = 0 and status = 'in_progress'`,
      ),
    )
    fixture.pass(31 * dayMs)
    await store.sweep(fixture.now())
    const left = await database.drizzle.execute("select 1 from response where runner_id = 'x'")
    expect(left).toHaveLength(0)
  })

  test('vacuums the embedded database once a thousand rows are deleted', async () => {
    const { drizzle } = fixture.database
    let vacuums = 0
    const counting = new Proxy(drizzle, {
      get: (target, name) =>
        name !== 'execute'
          ? Reflect.get(target, name)
          : async (query: SQL) => {
              if (JSON.stringify(query.queryChunks[0]).includes('vacuum')) vacuums++
              return target.execute(query)
            },
    })
    const store = fixture.storeWith({}, { ...fixture.database, kind: 'pglite', drizzle: counting })
    await store.sweep(fixture.now())
    const ended = async (count: number) => {
      for (let left = count; left > 0; left--) await addEnded(fixture.store)
      fixture.pass(31 * dayMs)
      // Each has a row and a log.
      await store.sweep(fixture.now())
      return vacuums
    }
    expect(await ended(600)).toBe(0)
    expect(await ended(600)).toBe(1)
    expect(await ended(600)).toBe(1)
  })
})
