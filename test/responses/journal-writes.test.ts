import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { advanceUntil, openEntries } from './journal-fixture.ts'

/** What goes into which write; the clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const segment = (number: number) => ({ first: number, last: number, frames: `${number}\n\n` })

test('frames that arrive during a write go into the next one, together', async () => {
  const writes: string[][] = []
  const first = Promise.withResolvers<Set<string>>()
  const { entries } = openEntries(2, ({ logged }) => {
    writes.push(logged.map((each) => `${each.id} ${each.segment.first}-${each.segment.last}`))
    return writes.length === 1 ? first.promise : Promise.resolve(new Set<string>())
  })
  const [one, two] = entries
  one?.append(segment(0))
  await advanceUntil(() => writes.length === 1)
  one?.append(segment(1))
  one?.append(segment(2))
  two?.append(segment(0))
  let steps = 0
  await advanceUntil(() => ++steps > 5)
  first.resolve(new Set())
  await advanceUntil(() => writes.length === 2)
  expect(writes).toEqual([['resp_0 0-0'], ['resp_0 1-2', 'resp_1 0-0']])
  await advanceUntil(() => ++steps > 20)
  expect(writes).toHaveLength(2)
})

test('ends of one turn of the loop go into one write, without the frames of other responses', async () => {
  const writes: string[][] = []
  const { entries, outcomes, end } = openEntries(5, ({ logged, ended }) => {
    writes.push([...logged.map(({ id }) => id), ...ended.map(({ id }) => `end of ${id}`)])
    return Promise.resolve(new Set<string>())
  })
  entries[0]?.append(segment(0))
  for (const entry of entries.slice(1)) end(entry)
  await new Promise((resolve) => setImmediate(resolve))
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  expect(outcomes).toHaveLength(4)
  await advanceUntil(() => writes.length === 2)
  expect(writes).toEqual([[1, 2, 3, 4].map((at) => `end of resp_${at}`), ['resp_0']])
})

test('an end does not wait for the frames of other responses, but for its own', async () => {
  const writes: string[][] = []
  const frames = Promise.withResolvers<Set<string>>()
  const { entries, outcomes, end } = openEntries(2, ({ logged, ended }) => {
    writes.push([...logged, ...ended].map(({ id }) => id))
    return writes.length === 1 ? frames.promise : Promise.resolve(new Set<string>())
  })
  entries[0]?.append(segment(0))
  await advanceUntil(() => writes.length === 1)
  for (const entry of entries.toReversed()) end(entry)
  await advanceUntil(() => outcomes.length === 1)
  let steps = 0
  await advanceUntil(() => ++steps > 5)
  expect(writes).toEqual([['resp_0'], ['resp_1']])
  frames.resolve(new Set())
  await advanceUntil(() => outcomes.length === 2)
  expect(writes).toEqual([['resp_0'], ['resp_1'], ['resp_0']])
})

test('an end is written before long frames of other responses', async () => {
  const writes: string[][] = []
  const first = Promise.withResolvers<Set<string>>()
  const { entries, end } = openEntries(4, ({ logged, ended }) => {
    writes.push([...ended, ...logged].map(({ id }) => id))
    return writes.length === 1 ? first.promise : Promise.resolve(new Set<string>())
  })
  const long = { first: 0, last: 0, frames: 'x'.repeat(1_048_576) }
  for (const entry of entries.slice(0, 3)) entry.append(long)
  for (const entry of entries.slice(3)) end(entry)
  first.resolve(new Set())
  await advanceUntil(() => writes.length === 3)
  expect(writes).toEqual([['resp_0'], ['resp_3', 'resp_1'], ['resp_2']])
})

test('frames are written again after an outage, also if no response ends', async () => {
  let isOut = true
  const written: string[] = []
  const { entries } = openEntries(2, ({ logged }) => {
    if (!isOut) written.push(...logged.map(({ id }) => id))
    return isOut ? Promise.reject(new Error('refused')) : Promise.resolve(new Set<string>())
  })
  entries[0]?.append(segment(0))
  let steps = 0
  await advanceUntil(() => ++steps > 200)
  isOut = false
  entries[1]?.append(segment(0))
  await advanceUntil(() => written.length > 0)
  expect(written).toEqual(['resp_1'])
})

test('many characters do not wait for the next write', async () => {
  const writes: number[] = []
  const { entries } = openEntries(1, ({ logged }) => {
    writes.push(...logged.map(({ segment: { frames } }) => frames.length))
    return Promise.resolve(new Set<string>())
  })
  entries[0]?.append({ first: 0, last: 0, frames: 'x'.repeat(999) })
  expect(writes).toEqual([])
  entries[0]?.append({ first: 1, last: 1, frames: 'x' })
  expect(writes).toEqual([1_000])
})

test('a discarded response is not written, and a later end of it is not stored', async () => {
  const writes: unknown[] = []
  const { entries, outcomes, end } = openEntries(2, (work) => {
    writes.push(work)
    return Promise.resolve(new Set<string>())
  })
  const [one, two] = entries
  one?.append(segment(0))
  await one?.discard()
  one?.append(segment(1))
  if (one !== undefined) end(one)
  await advanceUntil(() => outcomes.length === 1)
  let steps = 0
  await advanceUntil(() => ++steps > 5)
  expect([outcomes, writes]).toEqual([['unstored'], []])
  two?.append(segment(0))
  await advanceUntil(() => writes.length > 0)
  expect(writes).toHaveLength(1)
})

test('a response that is discarded while a refused write is repeated for each one is not written', async () => {
  const writes: string[][] = []
  const repeated = Promise.withResolvers<Set<string>>()
  const { entries, end } = openEntries(2, ({ ended }) => {
    writes.push(ended.map(({ id }) => id))
    return writes.length === 2 ? repeated.promise : Promise.reject(new Error('refused'))
  })
  for (const entry of entries) end(entry)
  await advanceUntil(() => writes.length === 2)
  void entries[1]?.discard()
  repeated.resolve(new Set())
  let steps = 0
  await advanceUntil(() => ++steps > 5)
  expect(writes).toEqual([['resp_0', 'resp_1'], ['resp_0']])
})

test('discarding waits for the write in flight, which may hold the response', async () => {
  const write = Promise.withResolvers<Set<string>>()
  let started = false
  const { entries } = openEntries(1, () => {
    started = true
    return write.promise
  })
  entries[0]?.append(segment(0))
  await advanceUntil(() => started)
  let isDiscarded = false
  void entries[0]?.discard().then(() => {
    isDiscarded = true
  })
  let steps = 0
  await advanceUntil(() => ++steps > 3)
  expect(isDiscarded).toBe(false)
  write.resolve(new Set())
  await advanceUntil(() => isDiscarded)
  expect(isDiscarded).toBe(true)
})

test('a refused end is distinguished from a stored one', async () => {
  const { entries, outcomes, end } = openEntries(2, () => Promise.resolve(new Set(['resp_1'])))
  for (const entry of entries) end(entry)
  await advanceUntil(() => outcomes.length === 2)
  expect(outcomes).toEqual(['stored', 'refused'])
})

test('a database that refuses is tried again at growing intervals', async () => {
  let attempts = 0
  const { entries, outcomes, end } = openEntries(1, () => {
    attempts += 1
    return Promise.reject(new Error('refused'))
  })
  for (const entry of entries) end(entry)
  await advanceUntil(() => outcomes.length === 1)
  expect(attempts).toBeWithin(10, 20)
})

test('closing writes at once what waits for the next write', async () => {
  const writes: string[] = []
  const { journal, entries } = openEntries(1, ({ logged }) => {
    writes.push(...logged.map(({ segment: { frames } }) => frames))
    return Promise.resolve(new Set<string>())
  })
  entries[0]?.append({ first: 0, last: 0, frames: 'last' })
  await journal.close()
  expect(writes).toEqual(['last'])
  await journal.close()
  expect(jest.getTimerCount()).toBe(0)
})
