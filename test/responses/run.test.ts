import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import { EventLog } from '#responses/event-log.ts'
import { createJournal } from '#responses/journal.ts'
import { LocalRun } from '#responses/run.ts'
import type { ResponseStore } from '#responses/store.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { controlledGeneration, eventsOf, forever, planOf, readOn, typesOf } from './runs-fixture.ts'
import { ann } from './store-fixture.ts'

/** The timers of a run: heartbeats and the wait for readers. The clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const heartbeatMs = 10_000
const abandonMs = 30_000
const [begin = [], text = [], ...rest] = eventsOf(['one '])

function start(head: Partial<ReturnType<typeof planOf>['head']> = {}) {
  const store = { write: async () => new Set<string>() } as unknown as ResponseStore
  const journal = createJournal({
    ...{ store, flushMs: 5, outageMaxMs: 1_000, urgentChars: 1_000_000, log: quietLog },
  })
  const generation = controlledGeneration()
  const plan = planOf(generation.generate)
  const ended: string[] = []
  const run = new LocalRun(
    { ...plan, head: { ...plan.head, ...head } },
    { log: new EventLog({ last: -1, charsMax: 1_000_000, isHeld: true }), wasQueued: false },
    {
      journal,
      runnerId: 'own',
      settings: { ...loadConfig({}).responses, abandonMs },
      heartbeatMs,
      streaming: { store, renderTerminalFrames: () => '', charsMax: 1_000_000, outageMaxMs: 0 },
      log: quietLog,
      onUnstored() {},
      onEnded: ({ id }) => ended.push(id),
    },
  )
  run.begin()
  return { run, generation, ended }
}

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms)
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
  // The journal collects ends during a turn of the loop.
  await new Promise((resolve) => setImmediate(resolve))
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
}

test('a silent stream gets a heartbeat in each interval after its last frame', async () => {
  const { run, generation } = start()
  const reader = readOn(run.frames(forever))
  generation.give(begin, text)
  await pass(9_000)
  const before = reader.count()
  generation.give(text)
  await pass(0)
  const after = reader.count()
  expect(after).toBe(before + 1)
  await pass(9_999)
  expect(reader.count()).toBe(after)
  await pass(1)
  expect(reader.count()).toBe(after + 1)
  await pass(9_999)
  expect(reader.count()).toBe(after + 1)
  await pass(1)
  expect(reader.count()).toBe(after + 2)
  generation.give(...rest)
  await pass(1_000)
  await pass(60_000)
  expect(typesOf(await reader.whole).at(-1)).toBe('response.completed')
})

test('a response without output opens at the first heartbeat', async () => {
  const watched = start()
  const reader = readOn(watched.run.frames(forever))
  await pass(9_999)
  expect(reader.count()).toBe(0)
  await pass(1)
  expect(typesOf(reader.text())[0]).toBe('response.created')
})

test('a run waits for its first reader, and for another one after the last', async () => {
  const { run, generation, ended } = start()
  await pass(29_000)
  const caller = new AbortController()
  const reader = readOn(run.frames(caller.signal))
  generation.give(begin, text)
  await pass(60_000)
  expect(ended).toEqual([])
  caller.abort()
  await pass(29_000)
  const again = new AbortController()
  readOn(run.watch({ startingAfter: 0, signal: again.signal }))
  await pass(60_000)
  expect(ended).toEqual([])
  again.abort()
  await pass(29_999)
  expect(ended).toEqual([])
  await pass(1)
  await pass(1_000)
  expect(ended).toEqual([run.id])
  expect((await run.current()).status).toBe('cancelled')
  expect(generation.signal()?.aborted).toBe(true)
  await reader.whole
})

test('a run that nobody reads from the start is cancelled, and a background run is not', async () => {
  const foreground = start()
  const background = start({ background: true })
  await pass(30_000)
  await pass(1_000)
  expect([foreground.ended, background.ended]).toEqual([[foreground.run.id], []])
  expect(background.run.ownerId).toBe(ann)
  await background.run.cancel()
})

test('an ended run leaves no timer', async () => {
  const { run, generation, ended } = start()
  generation.give(begin, text, ...rest)
  await pass(100)
  await pass(100)
  expect(ended).toEqual([run.id])
  expect(jest.getTimerCount()).toBe(0)
})
