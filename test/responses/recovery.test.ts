import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import { startRecovery } from '#responses/recovery.ts'
import type { ResponseMessage } from '#responses/runs.ts'
import type { ResponseStore } from '#responses/store.ts'
import type { OrphanedResponse } from '#responses/stored.ts'
import { createUnstored } from '#responses/unstored.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** When a worker sends heartbeats and ends the responses of others. The clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(async () => {
  await closing?.()
  jest.useRealTimers()
})

let closing: (() => Promise<void>) | undefined
const lostAfterMs = 30_000

const orphan = (id: string): OrphanedResponse => ({
  id,
  object: { id, status: 'in_progress', output: [] },
  last: -1,
})

type Given = { soleProcess?: boolean; orphans?: string[]; canEnd?: boolean }

async function start({ soleProcess = false, orphans = [], canEnd = true }: Given = {}) {
  const calls = { heartbeats: 0, sweeps: 0, searches: 0 }
  const ended: string[] = []
  const announced: ResponseMessage[] = []
  const overheard: string[] = []
  const state = {
    ...{ isAway: false, orphans: [...orphans], untracked: [] as string[], local: [] as string[] },
    progress: [] as { id: string; status: string; last: number }[],
  }
  const ask = async <Value>(answer: () => Value): Promise<Value> => {
    if (state.isAway) throw new Error('the database is away')
    return answer()
  }
  const store = {
    heartbeat: () => ask(() => void calls.heartbeats++),
    sweep: () => ask(() => void calls.sweeps++),
    progress: () => ask(() => state.progress),
    findUntracked: () => ask(() => state.untracked.map(orphan)),
    findOrphans: (_: unknown, countMax: number) =>
      ask(() => {
        calls.searches += 1
        return state.orphans.slice(0, countMax).map(orphan)
      }),
    readLog: async () => [],
    endTransactions: async () => {},
    async endInProgress({ id }: OrphanedResponse) {
      if (!canEnd) return false
      ended.push(id)
      state.orphans = state.orphans.filter((other) => other !== id)
      return true
    },
  } as unknown as ResponseStore
  const unstored = createUnstored()
  const replayLog = () => ({ add() {}, close: () => '', output: () => [] })
  const recovery = await startRecovery({
    store,
    rendering: { renderTerminalFrames: () => '', replayLog },
    runnerId: 'own',
    settings: { ...loadConfig({}).responses, lostAfterMs },
    soleProcess,
    localIds: () => state.local,
    storedIds: () => state.local,
    unstored,
    announce: (message) => ask(() => void announced.push(message)),
    onEndedInDatabase: (id, how) => overheard.push(`${id} ${how}`),
    log: quietLog,
    now: () => new Date(),
  })
  closing = recovery.close
  return { calls, ended, announced, overheard, state, unstored }
}

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    jest.advanceTimersByTime(500)
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
  }
}

test('a worker sends three heartbeats in the time after which it is lost', async () => {
  const { calls } = await start()
  expect(calls.heartbeats).toBe(1)
  await pass(lostAfterMs)
  expect(calls.heartbeats).toBe(4)
})

test('expired responses are deleted once a minute', async () => {
  const { calls } = await start()
  await pass(59_500)
  expect(calls.sweeps).toBe(0)
  await pass(61_000)
  expect(calls.sweeps).toBe(2)
})

test('workers get time to send a heartbeat before their responses are ended', async () => {
  const { ended } = await start({ orphans: ['one'] })
  await pass((lostAfterMs * 2) / 3)
  expect(ended).toEqual([])
  await pass(1_500)
  expect(ended).toEqual(['one'])
})

test('after an outage they get it again, and during one none is ended', async () => {
  const { ended, state } = await start()
  await pass(lostAfterMs)
  state.isAway = true
  await pass(lostAfterMs + 15_000)
  state.orphans = ['one']
  state.isAway = false
  // The first heartbeat after the outage comes within a third of this time.
  await pass((lostAfterMs * 2) / 3 - 1_000)
  expect(ended).toEqual([])
  await pass(lostAfterMs / 3 + 3_000)
  expect(ended).toEqual(['one'])
})

test('the only process ends all responses in progress at its start, however many', async () => {
  const orphans = Array.from({ length: 70 }, (_, at) => `resp_${at}`)
  const { ended, calls } = await start({ soleProcess: true, orphans })
  expect(ended).toEqual(orphans)
  expect(calls.searches).toBe(3)
  expect((await start({ orphans })).calls.searches).toBe(0)
})

test('a start whose orphans cannot be ended does not take for ever', async () => {
  const orphans = Array.from({ length: 32 }, (_, at) => `resp_${at}`)
  const { ended, calls } = await start({ soleProcess: true, orphans, canEnd: false })
  expect(calls.searches).toBe(1_000)
  expect(ended).toEqual([])
})

test('a response that this worker does not run is ended at the second sight', async () => {
  const { ended, state } = await start()
  state.untracked = ['one']
  await pass(1_000)
  expect(ended).toEqual([])
  state.untracked = ['two', 'one']
  await pass(1_000)
  expect(ended).toEqual(['one'])
})

test('what others ended or deleted is noticed here', async () => {
  const { overheard, state } = await start()
  state.local = ['one', 'two', 'three']
  state.progress = [
    { id: 'one', status: 'in_progress', last: 0 },
    { id: 'two', status: 'cancelled', last: 0 },
  ]
  await pass(1_000)
  expect(overheard).toEqual(['two cancelled', 'three deleted'])
})

test('unstored responses are announced to other workers once, when these can be reached', async () => {
  const { announced, state, unstored } = await start()
  state.isAway = true
  unstored.addOwn({ id: 'one', ownerId: 'ann' })
  unstored.addOwn({ id: 'two', ownerId: 'bob' })
  unstored.add({ id: 'three', ownerId: 'cleo' })
  await pass(3_000)
  expect(announced).toEqual([])
  state.isAway = false
  await pass(3_000)
  expect(announced).toEqual([
    { what: 'unstored', id: 'one', ownerId: 'ann' },
    { what: 'unstored', id: 'two', ownerId: 'bob' },
  ])
  expect(['one', 'three', 'four'].map(unstored.has)).toEqual([true, true, false])
  expect(() => unstored.refuse('ann', 'one')).toThrow('could not be stored')
  unstored.refuse('bob', 'one')
})

test('a bounded number of unstored responses is announced', async () => {
  const unstored = createUnstored()
  for (let at = 0; at < 10_010; at++) unstored.addOwn({ id: `resp_${at}`, ownerId: 'ann' })
  let announced = 0
  await unstored.announce(async () => {
    announced += 1
  })
  expect(announced).toBe(10_000)
})

test('closing leaves no timer', async () => {
  await start()
  await closing?.()
  expect(jest.getTimerCount()).toBe(0)
})
