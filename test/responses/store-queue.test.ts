import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import {
  ann,
  bob,
  message,
  nothing,
  objectOf,
  opened,
  queued,
  type StoreWorld,
  segment,
  startStore,
} from './store-world.ts'

let world: StoreWorld

beforeAll(async () => {
  world = await startStore()
})
afterEach(async () => {
  await world.database.drizzle.execute('delete from response')
})
afterAll(() => world.close())

const later = () => new Date(Date.now() + 60_000)
const longAgo = () => new Date(Date.now() - 3_600_000)

describe('the queue', () => {
  test('gives out what was put in, the oldest first, once', async () => {
    const { store } = world
    const all = Array.from({ length: 5 }, (_, at) =>
      queued({ createdAt: new Date(1_790_000_000_000 + at), input: [message(`${at}`)] }),
    )
    for (const each of all.toReversed()) expect(await store.enqueue(each, 10)).toBe(true)
    expect((await store.find(ann, all[0]?.id ?? ''))?.object.status).toBe('queued')
    expect(await store.claim('runner', 3)).toEqual(all.slice(0, 3))
    expect(await store.claim('other', 3)).toEqual(all.slice(3))
    expect(await store.claim('other', 3)).toEqual([])
    expect(await store.find(ann, all[0]?.id ?? '')).toMatchObject({
      object: { status: 'in_progress' },
      runnerId: 'runner',
      background: true,
      log: { last: 1 },
    })
  })

  test('is claimed by many at once, and nothing twice', async () => {
    const { store } = world
    const all = Array.from({ length: 60 }, () => queued())
    for (const each of all) await store.enqueue(each, 100)
    const claims = await Promise.all(
      Array.from({ length: 30 }, (_, at) => store.claim(`runner ${at}`, 3)),
    )
    const rest = await store.claim('last', 100)
    const ids = [...claims.flat(), ...rest].map(({ id }) => id)
    expect(ids.toSorted()).toEqual(all.map(({ id }) => id).toSorted())
  })

  test('holds so many unfinished responses of a key and no more, however many come at once', async () => {
    const { store } = world
    const all = Array.from({ length: 20 }, () => queued({ keyId: 'busy' }))
    const accepted = await Promise.all(all.map((each) => store.enqueue(each, 5)))
    expect(accepted.filter((isIn) => isIn)).toHaveLength(5)
    expect(await store.enqueue(queued({ keyId: 'other' }), 5)).toBe(true)
    const [claimed] = await store.claim('runner', 1)
    expect(await store.enqueue(queued({ keyId: 'busy' }), 5)).toBe(false)
    const id = claimed?.id ?? ''
    await store.write({
      ...nothing,
      ended: [{ id, object: objectOf(id, 'completed'), segment: null }],
    })
    expect(await store.enqueue(queued({ keyId: 'busy' }), 5)).toBe(true)
  })

  test('forgets the sealed request of what is claimed or ended', async () => {
    const { database, store } = world
    const waiting = queued({ request: 'sealed secret' })
    const ended = queued({ request: 'sealed secret' })
    const asked = async () => {
      const rows = await database.drizzle.execute('select request from response order by request')
      return rows.map((row) => row['request'])
    }
    await store.enqueue(waiting, 10)
    await store.enqueue(ended, 10)
    expect(await asked()).toEqual(['sealed secret', 'sealed secret'])
    const object = objectOf(ended.id, 'cancelled')
    expect(await store.endQueued(ann, ended.id, { object, segment: segment(2, 2) })).toBe(true)
    expect((await store.claim('runner', 10)).map(({ request }) => request)).toEqual([
      'sealed secret',
    ])
    expect(await asked()).toEqual([null, null])
  })

  test('lets go of what is cancelled or deleted while it waits, and only then', async () => {
    const { store } = world
    const [one, two, three] = [queued(), queued(), queued()]
    for (const each of [one, two, three]) await store.enqueue(each, 10)
    const ending = { object: objectOf(one.id, 'cancelled'), segment: segment(2, 3) }
    expect(await store.endQueued(bob, one.id, ending)).toBe(false)
    expect(await store.endQueued(ann, one.id, ending)).toBe(true)
    expect(await store.endQueued(ann, one.id, ending)).toBe(false)
    expect(await store.remove(ann, two.id)).toBe(true)
    expect((await store.claim('runner', 10)).map(({ id }) => id)).toEqual([three.id])
    const late = { object: objectOf(three.id, 'cancelled'), segment: null }
    expect(await store.endQueued(ann, three.id, late)).toBe(false)
    expect((await store.find(ann, one.id))?.log).toMatchObject({ status: 'cancelled', last: 3 })
    expect(await store.readLog(one.id, -1, 10_000)).toEqual([segment(0, 1), segment(2, 3)])
  })
})

describe('a lost response', () => {
  test('is one whose runner fell silent, or never lived', async () => {
    const { store } = world
    const [silent, orphan] = [opened({ runnerId: 'silent' }), opened({ runnerId: 'never' })]
    await store.beat('silent')
    await store.write({
      ...nothing,
      opened: [silent, orphan],
      logged: [{ id: silent.id, segment: segment(0, 4) }],
    })
    const idsBefore = async (time: Date) =>
      (await store.findLost(time, 10)).map(({ id }) => id).toSorted()
    expect(await idsBefore(longAgo())).toEqual([orphan.id])
    expect(await idsBefore(later())).toEqual([silent.id, orphan.id].toSorted())
    expect(await store.findLost(later(), 1)).toHaveLength(1)
    const lost = (await store.findLost(later(), 10)).find(({ id }) => id === silent.id)
    expect(lost).toEqual({ id: silent.id, object: silent.object, last: 4 })
  })

  test('is ended once, with what it had', async () => {
    const { store } = world
    const lost = opened()
    await store.write({
      ...nothing,
      opened: [lost],
      logged: [{ id: lost.id, segment: segment(0, 4) }],
    })
    const object = { ...objectOf(lost.id, 'failed', [message('half')]), error: { code: 'lost' } }
    expect(await store.endLost(lost.id, { object, segment: segment(5, 6) })).toBe(true)
    expect(await store.endLost(lost.id, { object, segment: segment(5, 6) })).toBe(false)
    expect((await store.find(ann, lost.id))?.object).toEqual(object)
    expect(await store.readLog(lost.id, -1, 10_000)).toEqual([segment(0, 4), segment(5, 6)])
    expect(await store.findLost(later(), 10)).toEqual([])
    // The runner was only slow.
    await store.write({
      opened: [],
      logged: [{ id: lost.id, segment: segment(7, 8) }],
      ended: [{ id: lost.id, object: objectOf(lost.id, 'completed'), segment: null }],
    })
    expect((await store.find(ann, lost.id))?.log).toMatchObject({ status: 'failed', last: 6 })
  })

  test('is not ended where its log went on', async () => {
    const { store } = world
    const slow = opened()
    await store.write({
      ...nothing,
      opened: [slow],
      logged: [{ id: slow.id, segment: segment(0, 9) }],
    })
    const ending = { object: objectOf(slow.id, 'failed'), segment: segment(5, 5) }
    expect(await store.endLost(slow.id, ending)).toBe(false)
    expect((await store.find(ann, slow.id))?.log).toMatchObject({ status: 'in_progress', last: 9 })
  })
})
