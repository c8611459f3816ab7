import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { createJournal } from '#responses/journal.ts'
import type { ResponseStore } from '#responses/store.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** How long responses wait for a database that hangs; the clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const outageMaxMs = 10_000
const stepMs = 100

/** The time until the condition holds. */
async function advanceUntil(reached: () => boolean): Promise<number> {
  let passedMs = 0
  for (; !reached() && passedMs < 10 * outageMaxMs; passedMs += stepMs) {
    jest.advanceTimersByTime(stepMs)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return passedMs
}

function openEntries(count: number, write: ResponseStore['write']) {
  const store = { write } as ResponseStore
  const journal = createJournal({
    store,
    flushMs: stepMs,
    outageMaxMs,
    urgentChars: 1_000,
    log: quietLog,
  })
  const outcomes: string[] = []
  const entries = Array.from({ length: count }, (_, at) =>
    journal.open({ id: `resp_${at}`, opened: null, onWritten() {}, onFailed() {} }),
  )
  const end = (entry: (typeof entries)[number]) => {
    const object = { id: 'x', status: 'completed' as const, output: [] }
    void entry.end({ object, segment: null }).then((outcome) => outcomes.push(outcome))
  }
  return { entries, outcomes, end }
}

test.each([1, 2, 50])(
  '%i responses wait for a database that hangs no longer than configured',
  async (count) => {
    const { entries, outcomes, end } = openEntries(count, () => new Promise(() => {}))
    for (const entry of entries) end(entry)
    const waitedMs = await advanceUntil(() => outcomes.length === count)
    expect(new Set(outcomes)).toEqual(new Set(['unstored']))
    expect(waitedMs).toBeWithin(outageMaxMs - stepMs, outageMaxMs + 1_500)
  },
)

test.each([
  ['hangs', () => new Promise<never>(() => {})],
  ['refuses', () => Promise.reject(new Error('refused'))],
])(
  'responses that are too large for one write do not wait for each other if the database %s',
  async (_, write) => {
    const count = 20
    const { entries, outcomes, end } = openEntries(count, write)
    for (const entry of entries) {
      entry.append({ first: 0, last: 0, frames: 'x'.repeat(1_048_576) })
      end(entry)
    }
    const waitedMs = await advanceUntil(() => outcomes.length === count)
    expect(new Set(outcomes)).toEqual(new Set(['unstored']))
    expect(waitedMs).toBeWithin(outageMaxMs - stepMs, outageMaxMs + 1_500)
  },
)

test('a large response that the database rejects does not delay others', async () => {
  const { entries, outcomes, end } = openEntries(2, ({ logged, ended }) =>
    [...logged, ...ended].some(({ id }) => id === 'resp_0')
      ? Promise.reject(new Error('a value is out of range'))
      : Promise.resolve(new Set<string>()),
  )
  for (const entry of entries) {
    entry.append({ first: 0, last: 0, frames: 'x'.repeat(1_048_576) })
    end(entry)
  }
  const waitedMs = await advanceUntil(() => outcomes.length === 1)
  expect(outcomes).toEqual(['stored'])
  expect(waitedMs).toBeLessThan(outageMaxMs / 2)
  await advanceUntil(() => outcomes.length === 2)
  expect(outcomes).toEqual(['stored', 'unstored'])
})

test('a response that ends during the outage waits for the rest of it', async () => {
  const { entries, outcomes, end } = openEntries(2, () => new Promise(() => {}))
  const [first, second] = entries
  if (first === undefined || second === undefined) throw new Error('two entries')
  end(first)
  let passed = 0
  await advanceUntil(() => ++passed > 40)
  end(second)
  const waitedMs = await advanceUntil(() => outcomes.length === 2)
  expect(waitedMs).toBeLessThan(outageMaxMs + 1_500)
})

test('a response is stored when the database answers again in time', async () => {
  let hangs = true
  const { entries, outcomes, end } = openEntries(1, () =>
    hangs ? new Promise(() => {}) : Promise.resolve(new Set<string>()),
  )
  for (const entry of entries) end(entry)
  let passed = 0
  await advanceUntil(() => ++passed > 40)
  hangs = false
  await advanceUntil(() => outcomes.length === 1)
  expect(outcomes).toEqual(['stored'])
})
