import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { serverUrl } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  ann,
  bob,
  endOf,
  enqueue,
  message,
  nothing,
  objectOf,
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
afterEach(async () => {
  await fixture.database.drizzle.execute('delete from response')
})
afterAll(() => fixture.close())

const hourMs = 3_600_000
/** However recent its heartbeat is. */
const anyRunner = { lostAfterMs: 0, frozenMaxMs: 0 }

describe('the background queue', () => {
  test('returns a queued response as it was stored, until it is claimed', async () => {
    const { store } = fixture
    const response = queued({ input: [message('0')] })
    expect(await enqueue(store, response)).toBe(true)
    expect((await store.find(ann, response.id))?.object.status).toBe('queued')
    expect(await store.findQueued(response.id)).toEqual(response)
    expect(await store.claimQueued(response.id, 'runner')).toBe(true)
    expect(await store.findQueued(response.id)).toBeUndefined()
    expect(await store.find(ann, response.id)).toMatchObject({
      object: { status: 'in_progress' },
      runnerId: 'runner',
      background: true,
      log: { last: 1 },
    })
  })

  test('gives a response to one of many concurrent claims', async () => {
    const { store } = fixture
    const all = Array.from({ length: 10 }, () => queued())
    for (const each of all) await enqueue(store, each)
    for (const { id } of all) {
      const claims = await Promise.all(
        Array.from({ length: 10 }, (_, at) => store.claimQueued(id, `runner ${at}`)),
      )
      expect(claims.filter((isClaimed) => isClaimed)).toHaveLength(1)
    }
  })

  test('enforces the limit of a key for concurrent requests', async () => {
    const { store } = fixture
    const all = Array.from({ length: 20 }, () => queued({ keyId: 'busy' }))
    const accepted = await Promise.all(all.map((each) => enqueue(store, each, 5)))
    expect(accepted.filter((isAccepted) => isAccepted)).toHaveLength(5)
    expect(await enqueue(store, queued({ keyId: 'other' }), 5)).toBe(true)
    const id = all[accepted.indexOf(true)]?.id ?? ''
    expect(await store.claimQueued(id, 'runner')).toBe(true)
    expect(await enqueue(store, queued({ keyId: 'busy' }), 5)).toBe(false)
    await store.write({
      ...nothing,
      ended: [endOf(objectOf(id, 'completed'))],
    })
    expect(await enqueue(store, queued({ keyId: 'busy' }), 5)).toBe(true)
  })

  test('stores nothing when the job cannot be added', async () => {
    const { store } = fixture
    const response = queued()
    const addJob = () => Promise.reject(new Error('no job'))
    await expect(store.enqueue(response, { unfinishedMax: 5, addJob })).rejects.toThrow('no job')
    expect(await store.find(ann, response.id)).toBeUndefined()
  })

  test('finds the queued responses without a job, oldest first', async () => {
    const { store } = fixture
    const all = Array.from({ length: 3 }, (_, at) =>
      queued({ createdAt: new Date(1_790_000_000_000 + at) }),
    )
    for (const each of all.toReversed()) await enqueue(store, each)
    await store.claimQueued(all[1]?.id ?? '', 'runner')
    const missing: string[] = []
    await store.addMissingJobs('q', async (_transaction, id) => void missing.push(id))
    expect(missing).toEqual([all[0]?.id ?? '', all[2]?.id ?? ''])
  })

  test('deletes the encrypted request of a claimed or ended response', async () => {
    const { database, store } = fixture
    const waiting = queued({ request: 'sealed secret' })
    const ended = queued({ request: 'sealed secret' })
    const requests = async () => {
      const rows = await database.drizzle.execute('select request from response order by request')
      return rows.map((row) => row['request'])
    }
    await enqueue(store, waiting)
    await enqueue(store, ended)
    expect(await requests()).toEqual(['sealed secret', 'sealed secret'])
    const object = objectOf(ended.id, 'cancelled')
    expect(await store.endQueued(ann, ended.id, { object, segment: segment(2, 2) })).toBe(true)
    expect((await store.findQueued(waiting.id))?.request).toBe('sealed secret')
    expect(await store.claimQueued(waiting.id, 'runner')).toBe(true)
    expect(await requests()).toEqual([null, null])
  })

  test('cancels and deletes only queued responses of the owner', async () => {
    const { store } = fixture
    const [one, two, three] = [queued(), queued(), queued()]
    for (const each of [one, two, three]) await enqueue(store, each)
    const ending = { object: objectOf(one.id, 'cancelled'), segment: segment(2, 3) }
    expect(await store.endQueued(bob, one.id, ending)).toBe(false)
    expect(await store.endQueued(ann, one.id, ending)).toBe(true)
    expect(await store.endQueued(ann, one.id, ending)).toBe(false)
    expect(await store.remove(ann, two.id)).toBe(true)
    expect(await store.claimQueued(one.id, 'runner')).toBe(false)
    expect(await store.claimQueued(two.id, 'runner')).toBe(false)
    expect(await store.claimQueued(three.id, 'runner')).toBe(true)
    const late = { object: objectOf(three.id, 'cancelled'), segment: null }
    expect(await store.endQueued(ann, three.id, late)).toBe(false)
    expect((await store.find(ann, one.id))?.log).toMatchObject({ status: 'cancelled', last: 3 })
    expect(await store.readLog(one.id, -1, 10_000)).toEqual([segment(0, 1), segment(2, 3)])
  })
})

describe('an orphaned response', () => {
  test('is one whose runner stopped sending heartbeats, or never sent one', async () => {
    const { store } = fixture
    const [silent, unknown] = [opened({ runnerId: 'silent' }), opened({ runnerId: 'never' })]
    await store.heartbeat('silent')
    await store.write({
      ...nothing,
      opened: [silent, unknown],
      logged: [{ id: silent.id, segment: segment(0, 4) }],
    })
    const idsAfter = async (lostAfterMs: number) =>
      (await store.findOrphans({ lostAfterMs, frozenMaxMs: hourMs }, 10))
        .map(({ id }) => id)
        .toSorted()
    expect(await idsAfter(hourMs)).toEqual([unknown.id])
    expect(await idsAfter(0)).toEqual([silent.id, unknown.id].toSorted())
    expect(await store.findOrphans(anyRunner, 1)).toHaveLength(1)
    const orphan = (await store.findOrphans(anyRunner, 10)).find(({ id }) => id === silent.id)
    expect(orphan).toEqual({ id: silent.id, object: silent.object, last: 4 })
  })

  test.skipIf(serverUrl === undefined)(
    'is not one of a silent runner with an open connection, until it is silent for longer',
    async () => {
      const { store, database } = fixture
      const frozen = opened({ runnerId: database.processName })
      await store.heartbeat(database.processName)
      await store.write({ ...nothing, opened: [frozen] })
      const limits = { lostAfterMs: 0, frozenMaxMs: hourMs }
      expect(await store.findOrphans(limits, 10)).toEqual([])
      expect(await store.findOrphans({ ...limits, frozenMaxMs: 0 }, 10)).toHaveLength(1)
    },
  )

  test('is ended once, with its log and output', async () => {
    const { store } = fixture
    const orphan = opened()
    await store.write({
      ...nothing,
      opened: [orphan],
      logged: [{ id: orphan.id, segment: segment(0, 4) }],
    })
    const object = { ...objectOf(orphan.id, 'failed', [message('half')]), error: { code: 'lost' } }
    const found = { id: orphan.id, last: 4 }
    expect(await store.endInProgress(found, { object, segment: segment(5, 6) })).toBe(true)
    expect(await store.endInProgress(found, { object, segment: segment(5, 6) })).toBe(false)
    expect((await store.find(ann, orphan.id))?.object).toEqual(object)
    expect(await store.readLog(orphan.id, -1, 10_000)).toEqual([segment(0, 4), segment(5, 6)])
    expect(await store.findOrphans(anyRunner, 10)).toEqual([])
    // The runner was only slow.
    const write = (status: 'completed' | 'failed') =>
      store.write({
        opened: [],
        logged: [{ id: orphan.id, segment: segment(7, 8) }],
        ended: [endOf(objectOf(orphan.id, status))],
      })
    expect(await write('completed')).toEqual(new Set([orphan.id]))
    // A repeated write, whose first attempt had no reply.
    expect(await write('failed')).toEqual(new Set())
    expect((await store.find(ann, orphan.id))?.log).toMatchObject({ status: 'failed', last: 6 })
  })

  test.skipIf(serverUrl === undefined)(
    'whose runner was suspended in a transaction is ended after the end of that',
    async () => {
      const { store, database } = fixture
      const { processName, drizzle } = database
      const locked = opened({ runnerId: processName })
      await store.heartbeat(processName)
      await store.write({ ...nothing, opened: [locked] })
      const holdsLock = Promise.withResolvers<void>()
      const never = Promise.withResolvers<void>()
      const transaction = drizzle.transaction(async (handle) => {
        await handle.execute(`select 1 from response where id = '${locked.id}' for update`)
        holdsLock.resolve()
        await never.promise
      })
      const failure = transaction.catch((error: unknown) => error)
      await holdsLock.promise

      const ending = { object: objectOf(locked.id, 'failed'), segment: null }
      const end = () => store.endInProgress({ id: locked.id, last: -1 }, ending)
      await store.endTransactions({ frozenMaxMs: hourMs })
      expect(await end()).toBe(false)
      await store.endTransactions({ frozenMaxMs: 0 })
      await eventually('it is ended', end)
      never.resolve()
      expect(await failure).toBeInstanceOf(Error)
    },
  )

  test('is not ended if its log advanced', async () => {
    const { store } = fixture
    const slow = opened()
    await store.write({
      ...nothing,
      opened: [slow],
      logged: [{ id: slow.id, segment: segment(0, 9) }],
    })
    const ending = { object: objectOf(slow.id, 'failed'), segment: null }
    expect(await store.endInProgress({ id: slow.id, last: 4 }, ending)).toBe(false)
    expect((await store.find(ann, slow.id))?.log).toMatchObject({ status: 'in_progress', last: 9 })
  })
})
