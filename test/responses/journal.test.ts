import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import type { ResponseStore } from '#responses/store.ts'
import { advanceUntil, openEntries, outageMaxMs, stepMs } from './journal-fixture.ts'

/** How long responses wait for a database that hangs; the clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

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

/** The database rejects what belongs to the first response. */
const rejectFirst: ResponseStore['write'] = ({ logged, ended }) =>
  [...logged, ...ended].some(({ id }) => id === 'resp_0')
    ? Promise.reject(new Error('a value is out of range'))
    : Promise.resolve(new Set<string>())

test('a large response that the database rejects does not delay others', async () => {
  const { entries, outcomes, end } = openEntries(2, rejectFirst)
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

test('a response that the database rejects is given up in time, however many others are stored meanwhile', async () => {
  const { entries, outcomes, end } = openEntries(200, rejectFirst)
  const frames = 'x'.repeat(1_048_576)
  const others = entries.values()
  const endNext = () => {
    const { value: entry } = others.next()
    entry?.append({ first: 0, last: 0, frames })
    if (entry !== undefined) end(entry)
    return outcomes.includes('unstored')
  }
  expect(await advanceUntil(endNext)).toBeWithin(outageMaxMs - stepMs, outageMaxMs + 1_500)
  expect(outcomes.length).toBeGreaterThan(50)
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

test('responses that the database rejects do not hold up others', async () => {
  const written: string[] = []
  const { entries, outcomes, end } = openEntries(5, async ({ ended }) => {
    const ids = ended.map(({ id }) => id)
    if (ids.some((id) => id < 'resp_3')) throw new Error('rejected')
    written.push(...ids)
    return new Set()
  })
  for (const entry of entries) end(entry)
  const waitedMs = await advanceUntil(() => outcomes.length >= 2)
  expect(waitedMs).toBeLessThan(outageMaxMs / 2)
  expect(written.toSorted()).toEqual(['resp_3', 'resp_4'])
  await advanceUntil(() => outcomes.length === 5)
  expect(outcomes).toEqual(['stored', 'stored', 'unstored', 'unstored', 'unstored'])
})

test('of two responses, one that the database rejects delays the other by one write', async () => {
  const writes: string[][] = []
  const write: ResponseStore['write'] = (work) => {
    writes.push(work.ended.map(({ id }) => id))
    return rejectFirst(work)
  }
  const { entries, outcomes, end } = openEntries(2, write)
  for (const entry of entries) end(entry)
  await advanceUntil(() => outcomes.length === 1)
  expect(outcomes).toEqual(['stored'])
  expect(writes).toEqual([['resp_0', 'resp_1'], ['resp_0'], ['resp_1']])
})

test('a database that refuses two responses one by one is not asked for the others before the next attempt', async () => {
  const writes: string[][] = []
  const { entries, end } = openEntries(5, ({ ended }) => {
    writes.push(ended.map(({ id }) => id))
    return Promise.reject(new Error('refused'))
  })
  for (const entry of entries) end(entry)
  await new Promise((resolve) => setImmediate(resolve))
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
  expect(writes.slice(1)).toEqual([['resp_0'], ['resp_1']])
})
