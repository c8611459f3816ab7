import { afterEach, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { Reservation } from '#inference/inference.ts'
import { AppError } from '#lib/errors.ts'
import { createLimits } from '#limits/create-limits.ts'
import { createLeaseStore } from '#limits/lease-store.ts'
import type { LimitScopes } from '#limits/plans.ts'
import { openTestDatabase, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { ended, generationCall, noScopes } from './admitting.ts'

const onServer = test.skipIf(serverUrl === undefined)
const leaseMs = 600
let database: TestDatabase
const opened: { close(): Promise<void> }[] = []

beforeEach(async () => {
  database = await openTestDatabase()
})
afterEach(async () => {
  for (const limits of opened.splice(0)) await limits.close()
  await database.close()
})

/** The limits of one process, which can be cut off from the database. Its meters do not refill. */
function open(processId: string, scopes: Partial<LimitScopes>, lastsMs = leaseMs) {
  const store = createLeaseStore(database, { processId, leaseMs: lastsMs })
  let isCut = false
  let exchangeMs = 0
  let exchanges = 0
  let nowMs = 1_000
  const limits = createLimits({
    budgets: null,
    database: { ...database, processName: processId },
    scopes: () => all,
    log: quietLog,
    clockMs: () => nowMs,
    now: () => new Date(),
    sleep: Bun.sleep,
    onRefused() {},
    onExchange: () => exchanges++,
    leaseMs: lastsMs,
    store: {
      ...store,
      async exchange(...asked) {
        if (isCut) throw new AppError('service_unavailable', 'unreachable')
        const answer = await store.exchange(...asked)
        await Bun.sleep(exchangeMs)
        return answer
      },
    },
  })
  const all = { ...noScopes, ...scopes }
  opened.push(limits)
  const admit = async (userId = 'alice'): Promise<Reservation | null> => {
    try {
      return await limits.admit(...generationCall({ userId }))
    } catch {
      return null
    }
  }
  return {
    admit,
    /** How many calls are admitted until one is refused. */
    async admitAll(userId = 'alice'): Promise<Reservation[]> {
      const admitted: Reservation[] = []
      for (let next = await admit(userId); next !== null; next = await admit(userId)) {
        admitted.push(next)
      }
      return admitted
    },
    cut(cut: boolean) {
      isCut = cut
    },
    pass(ms: number) {
      nowMs += ms
    },
    slow(ms: number) {
      exchangeMs = ms
    },
    exchanges: () => exchanges,
    async exchanged() {
      const before = exchanges
      await eventually('an exchange', () => exchanges > before + 1)
    },
  }
}

/** Both have exchanged, so they know of each other. */
async function openPair(scopes: Partial<LimitScopes>) {
  const [a, b] = [open('process-a', scopes), open('process-b', scopes)]
  for (const one of [a, b, a]) (await one.admit('somebody'))?.settle(ended({ input: 1, output: 1 }))
  await a.exchanged()
  await b.exchanged()
  return [a, b] as const
}

/** So few that none is refilled during a test. */
onServer(
  'while the database is unreachable each process goes on with its part of a rate',
  async () => {
    const [a, b] = await openPair({ default: { requests_per_minute: 4 } })
    a.cut(true)
    b.cut(true)
    const ofA = (await a.admitAll()).length
    const ofB = (await b.admitAll()).length
    expect(ofA).toBe(2)
    expect(ofB).toBe(2)
    // What was used meanwhile is reported: nothing is left over for anybody.
    a.cut(false)
    b.cut(false)
    await a.exchanged()
    await b.exchanged()
    expect(await open('process-c', { default: { requests_per_minute: 4 } }).admit()).toBeNull()
  },
)

onServer(
  'what was not used in an outage is not reported, whatever becomes of the process',
  async () => {
    const scopes = { default: { requests_per_minute: 8 } }
    const [a, b] = await openPair(scopes)
    for (let outages = 0; outages < 3; outages++) {
      a.cut(true)
      b.cut(true)
      await a.exchanged()
      await b.exchanged()
      expect(await (outages === 0 ? a : b).admit()).not.toBeNull()
      a.cut(false)
      b.cut(false)
      await a.exchanged()
      await b.exchanged()
    }
    expect(await open('process-c', scopes).admitAll()).toHaveLength(8 - 3)
  },
)

onServer('one process that is cut off adds at most its part', async () => {
  const [a, b] = await openPair({ default: { requests_per_minute: 4 } })
  a.cut(true)
  expect((await a.admitAll()).length).toBe(2)
  expect((await b.admitAll()).length).toBeLessThanOrEqual(4)
  a.cut(false)
  await a.exchanged()
  expect(await a.admit()).toBeNull()
})

onServer(
  'slots go on within the part of the process, and are registered again afterwards',
  async () => {
    const scopes = { default: { concurrent_generations: 4 } }
    const [a, b] = await openPair(scopes)
    const first = await a.admit()
    expect(first).not.toBeNull()
    a.cut(true)
    b.cut(true)
    const more = await a.admitAll()
    expect(more).toHaveLength(1)
    expect(await b.admitAll()).toHaveLength(2)
    a.cut(false)
    b.cut(false)
    await a.exchanged()
    await b.exchanged()
    const c = open('process-c', scopes)
    expect(await c.admit()).toBeNull()
    first?.settle(ended({ input: 1, output: 1 }))
    await eventually('the slot returns', async () => (await c.admit()) !== null)
  },
)

onServer('a limit below the number of processes lets each of them begin one call', async () => {
  const [a, b] = await openPair({ default: { requests_per_minute: 1 } })
  a.cut(true)
  b.cut(true)
  expect(await a.admitAll('dora')).toHaveLength(1)
  expect(await b.admitAll('dora')).toHaveLength(1)
})

onServer(
  'a slot that an exchange took after its process had given up on it is freed again',
  async () => {
    const limits = open('process-a', { default: { concurrent_generations: 4 } })
    const running = await limits.admit()
    await limits.exchanged()
    await database.drizzle.execute(
      sql`insert into limit_slot (key, process_id, slots) values ('user:bob:late', 'process-a', 2)`,
    )
    const keys = async () => {
      const rows = await database.drizzle.execute<{ key: string }>(sql`select key from limit_slot`)
      return rows.map(({ key }) => key)
    }
    await eventually('it is freed', async () => !(await keys()).includes('user:bob:late'))
    expect(await keys()).toHaveLength(1)
    running?.settle(ended({ input: 1, output: 1 }))
  },
)

onServer('calls that end while others run leave their slots to the next ones', async () => {
  const noRenewalMs = 600_000
  const limits = open('process-a', { default: { concurrent_generations: 100 } }, noRenewalMs)
  const running = await Promise.all(Array.from({ length: 8 }, () => limits.admit()))
  const before = limits.exchanges()
  for (let round = 0; round < 20; round++) {
    for (const one of running.splice(0, 2)) one?.settle(ended({ input: 1, output: 1 }))
    running.push(await limits.admit(), await limits.admit())
    await Bun.sleep(2)
  }
  expect(limits.exchanges() - before).toBeLessThanOrEqual(1)
  for (const one of running) one?.settle(ended({ input: 1, output: 1 }))
})

onServer('slots whose lease ended in a pause of the process are registered again', async () => {
  const noRenewalMs = 600_000
  const limits = open('process-a', { default: { concurrent_generations: 4 } }, noRenewalMs)
  const running = await limits.admit('alice')
  await database.drizzle.execute(sql`delete from limit_process where id = 'process-a'`)
  limits.pass(noRenewalMs)
  const next = await limits.admit('bob')
  const rows = await database.drizzle.execute<{ key: string }>(sql`select key from limit_slot`)
  expect(rows.map(({ key }) => key).toSorted()).toEqual([
    'user:alice:concurrent_generations',
    'user:bob:concurrent_generations',
  ])
  for (const one of [running, next]) one?.settle(ended({ input: 1, output: 1 }))
})

onServer.each([
  ['slots', { concurrent_generations: 4 }],
  ['units of a rate', { requests_per_minute: 16 }],
  // One kind is at hand when the call comes, and would be returned while it waits for the other.
  ['slots and units', { concurrent_generations: 4, requests_per_minute: 100 }],
])('%s that a waiting call was given are not returned before it takes them', async (_, limit) => {
  const limits = open('process-a', { default: limit })
  // Of calls at different times, some come during one renewal and wait when the next is due.
  limits.slow(leaseMs / 3)
  for (let call = 0; call < 8; call++) {
    await Bun.sleep(leaseMs / 8)
    // Idle shares are returned.
    limits.pass(leaseMs)
    const admitted = await limits.admit(`user-${call % 2}`)
    expect(admitted).not.toBeNull()
    admitted?.settle(ended({ input: 1, output: 1 }))
  }
})
