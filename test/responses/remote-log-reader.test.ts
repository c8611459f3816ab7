import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { createRemoteLogReader, type RemoteLogReader } from '#responses/remote-log-reader.ts'
import type { ResponseStatus } from '#responses/response.ts'
import type { ResponseStore } from '#responses/store.ts'
import type { FoundResponse, LogSegment } from '#responses/stored.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** Logs of responses on other workers, as their rows change. The clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(async () => {
  await reader.close()
  jest.useRealTimers()
})

let reader: RemoteLogReader

const frame = (number: number) => `data: ${number}\n\n`
const segment = (number: number) => ({ first: number, last: number, frames: frame(number) })

const found = (id: string, last = -1): FoundResponse => ({
  object: { id, status: 'in_progress', output: [] },
  runnerId: 'another',
  background: true,
  log: { id, status: 'in_progress', last },
  isLogExpired: false,
})

function start() {
  const rows = new Map<string, { status: ResponseStatus; segments: LogSegment[] }>()
  const asked: string[][] = []
  const database = { reads: 0, isAway: false, hold: Promise.resolve() }
  const store = {
    async progress(ids: readonly string[]) {
      asked.push([...ids])
      if (database.isAway) throw new Error('the database is away')
      return ids.flatMap((id) => {
        const row = rows.get(id)
        return row === undefined
          ? []
          : { id, status: row.status, last: row.segments.at(-1)?.last ?? -1 }
      })
    },
    async readLog(id: string, after: number) {
      database.reads += 1
      await database.hold
      return rows.get(id)?.segments.filter(({ last }) => last > after) ?? []
    },
    async find(_ownerId: string, id: string) {
      const row = rows.get(id)
      if (row === undefined) return undefined
      const { object, log, ...rest } = found(id, row.segments.at(-1)?.last)
      const { status } = row
      return { ...rest, object: { ...object, status }, log: { ...log, status } }
    },
  } as unknown as ResponseStore
  const replayLog = () => ({ add() {}, close: () => '', output: () => [] })
  reader = createRemoteLogReader({
    store,
    rendering: { renderTerminalFrames: () => 'the end\n\n', replayLog },
    charsMax: 10_000,
    outageMaxMs: 3_000,
    log: quietLog,
  })
  return { rows, asked, database }
}

const idleReader = () => ({ position: -1, changed() {} })

async function poll(times = 1): Promise<void> {
  for (let turn = 0; turn < times; turn++) {
    jest.advanceTimersByTime(200)
    for (let step = 0; step < 50; step++) await Promise.resolve()
  }
}

test('several readers of one response share a log, which follows the database', async () => {
  const { rows, asked, database } = start()
  rows.set('one', { status: 'in_progress', segments: [segment(0)] })
  const log = reader.subscribe('ann', found('one'))
  expect(reader.subscribe('ann', found('one'))).toBe(log)
  log.attach(idleReader())
  await poll()
  expect(log.read(-1)).toEqual({ frames: frame(0), last: 0 })
  rows.get('one')?.segments.push(segment(1), segment(2))
  await poll()
  expect(log.read(-1)).toEqual({ frames: [0, 1, 2].map(frame).join(''), last: 2 })
  expect([log.ended, database.reads]).toEqual([null, 2])
  rows.set('one', { status: 'completed', segments: [0, 1, 2, 3].map(segment) })
  await poll()
  expect([log.last, log.ended?.kind]).toEqual([3, expect.any(String)])
  await poll()
  expect(asked).toEqual([['one'], ['one'], ['one']])
})

test('a response without readers is no longer asked for', async () => {
  const { rows, asked } = start()
  for (const id of ['one', 'two']) rows.set(id, { status: 'in_progress', segments: [] })
  const [one, two] = ['one', 'two'].map((id) => {
    const log = reader.subscribe('ann', found(id))
    const attached = idleReader()
    log.attach(attached)
    return { leave: () => log.detach(attached) }
  })
  await poll()
  one?.leave()
  await poll()
  two?.leave()
  await poll(2)
  expect(asked).toEqual([['one', 'two'], ['two']])
})

test('the log of a deleted response ends', async () => {
  const { rows } = start()
  rows.set('one', { status: 'in_progress', segments: [segment(0)] })
  const log = reader.subscribe('ann', found('one'))
  log.attach(idleReader())
  await poll()
  rows.delete('one')
  await poll()
  expect([log.last, log.ended]).toEqual([0, expect.objectContaining({ kind: 'truncated' })])
})

test('a log is handed over only if it is up to date, and once', async () => {
  const { rows, asked } = start()
  rows.set('one', { status: 'queued', segments: [segment(0)] })
  const log = reader.subscribe('ann', found('one'))
  log.attach(idleReader())
  expect(reader.takeOver('one', 0)).toBeUndefined()
  await poll()
  expect(reader.takeOver('two', 0)).toBeUndefined()
  expect(reader.takeOver('one', 0)).toBe(log)
  expect(reader.takeOver('one', 0)).toBeUndefined()
  await poll()
  expect(asked).toHaveLength(1)
})

test('a read that a hand-over overtook adds nothing and ends nothing', async () => {
  const { rows, database } = start()
  const held = Promise.withResolvers<void>()
  database.hold = held.promise
  rows.set('one', { status: 'completed', segments: [segment(0)] })
  const log = reader.subscribe('ann', found('one'))
  log.attach(idleReader())
  await poll()
  expect(database.reads).toBe(1)
  // Its own run writes it from now on.
  expect(reader.takeOver('one', -1)).toBe(log)
  held.resolve()
  await poll()
  expect([log.last, log.ended]).toEqual([-1, null])
})

test('a log that the database lists and does not return is asked for again', async () => {
  const { rows, database } = start()
  rows.set('one', { status: 'in_progress', segments: [{ first: 0, last: 5, frames: '' }] })
  const log = reader.subscribe('ann', found('one', 4))
  log.attach(idleReader())
  await poll(2)
  expect([database.reads, log.last, log.ended]).toEqual([2, 4, null])
})

test('readers wait for an unavailable database, and no longer than configured', async () => {
  const { rows, database } = start()
  rows.set('one', { status: 'in_progress', segments: [] })
  const log = reader.subscribe('ann', found('one'))
  log.attach(idleReader())
  await poll(5)
  database.isAway = true
  await poll(14)
  expect(log.ended).toBeNull()
  database.isAway = false
  await poll(5)
  database.isAway = true
  await poll(14)
  expect(log.ended).toBeNull()
  await poll(3)
  expect(log.ended).toMatchObject({
    kind: 'failed',
    error: { kind: 'service_unavailable', retryAfterS: 1 },
  })
})

test('closing ends all logs', async () => {
  start()
  const logs = ['one', 'two'].map((id) => reader.subscribe('ann', found(id)))
  await reader.close()
  expect(logs.map((log) => log.ended?.kind)).toEqual(['failed', 'failed'])
  expect(jest.getTimerCount()).toBe(0)
})
