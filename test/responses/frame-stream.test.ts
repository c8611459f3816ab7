import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { EventLog } from '#responses/event-log.ts'
import { type FrameStreamDeps, streamFrames } from '#responses/frame-stream.ts'
import type { LogSegment } from '#responses/stored.ts'

/** Frames that only the database has. The clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
  // The process has run for longer than an outage may last.
  jest.advanceTimersByTime(2 * outageMaxMs)
})
afterEach(() => {
  jest.useRealTimers()
})

const outageMaxMs = 10_000
const away = new AppError('service_unavailable', 'The database is away.')
const stored: LogSegment = { first: 0, last: 3, frames: 'a\n\nb\n\nc\n\nd\n\n' }

/** A reader of a log whose frames were all evicted. */
function read(readLog: () => Promise<LogSegment[]>, { isRunning = false } = {}) {
  const log = new EventLog({ last: 3, charsMax: 25 })
  if (!isRunning) log.end({ kind: 'complete' })
  const controller = new AbortController()
  let attempts = 0
  const store = {
    readLog: () => {
      attempts++
      return readLog()
    },
  } as unknown as FrameStreamDeps['store']
  const frames = streamFrames(
    { id: 'resp_1', log },
    { startingAfter: -1, signal: controller.signal },
    { store, renderTerminalFrames: () => '', charsMax: 100, outageMaxMs },
  )
  let outcome: unknown
  Array.fromAsync(frames).then(
    (all) => {
      outcome = all.join('')
    },
    (error: unknown) => {
      outcome = error
    },
  )
  return { log, controller, outcome: () => outcome, attempts: () => attempts }
}

async function pass(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 50) {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    jest.advanceTimersByTime(50)
  }
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

test('a reader waits for a database that is away, and misses no frame', async () => {
  let isAway = true
  const { outcome } = read(async () => {
    if (isAway) throw away
    return [stored]
  })
  await pass(outageMaxMs - 2_000)
  expect(outcome()).toBeUndefined()
  isAway = false
  await pass(1_000)
  expect(outcome()).toBe(stored.frames)
})

test('at longer intervals, and only for as long as an outage may last', async () => {
  const { outcome, attempts } = read(() => Promise.reject(away))
  await pass(outageMaxMs - 1_000)
  expect(outcome()).toBeUndefined()
  await pass(2_000)
  expect(outcome()).toBe(away)
  // Pauses of 100, 200, 400, 800 and 1,000 ms, each at least half as long.
  expect(attempts()).toBeWithin(10, 24)
})

test('any other failure ends the stream at once', async () => {
  const failure = new Error('a column is missing')
  const { outcome, attempts } = read(() => Promise.reject(failure))
  await pass(0)
  expect([outcome(), attempts()]).toEqual([failure, 1])
})

test('a reader that leaves during an outage gets no error', async () => {
  const { controller, outcome } = read(() => Promise.reject(away))
  await pass(1_000)
  controller.abort()
  await pass(1_000)
  expect(outcome()).toBe('')
})

test.each([true, false])(
  'a piece that is missing ends the stream, running: %p',
  async (isRunning) => {
    const expired = { wireCode: 'stream_expired' }
    const late = read(async () => [{ first: 2, last: 3, frames: 'c\n\nd\n\n' }], { isRunning })
    await pass(0)
    expect(late.outcome()).toMatchObject(expired)
    const nothing = read(async () => [], { isRunning })
    await pass(0)
    if (isRunning) expect(nothing.outcome()).toBeUndefined()
    else expect(nothing.outcome()).toMatchObject(expired)
  },
)

test.each([0, 1, 2, 3, 4, 5])(
  'a frame that arrives %i steps after the stored ones follows them',
  async (steps) => {
    const query = Promise.withResolvers<LogSegment[]>()
    const { log, outcome } = read(() => query.promise, { isRunning: true })
    await pass(0)
    query.resolve([stored])
    for (let step = 0; step < steps; step++) await Promise.resolve()
    log.append({ first: 4, last: 4, frames: 'e\n\n' })
    await pass(0)
    log.end({ kind: 'complete' })
    await pass(0)
    expect(outcome()).toBe(`${stored.frames}e\n\n`)
  },
)

test('frames that are stored during a read that misses them are read again', async () => {
  const reads = [Promise.withResolvers<LogSegment[]>(), Promise.withResolvers<LogSegment[]>()]
  let count = 0
  const { log, outcome, attempts } = read(() => reads[count++]?.promise ?? Promise.resolve([]), {
    isRunning: true,
  })
  await pass(0)
  log.append({ first: 4, last: 4, frames: 'e\n\n' })
  reads[0]?.resolve([])
  await pass(0)
  expect(attempts()).toBe(2)
  reads[1]?.resolve([stored])
  await pass(0)
  log.end({ kind: 'complete' })
  await pass(0)
  expect(outcome()).toBe(`${stored.frames}e\n\n`)
})
