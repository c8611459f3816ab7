import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { beginStream, type FrameSink, type FrameSource } from '#http/event-stream.ts'
import { AppError } from '#lib/errors.ts'

/** When heartbeats are sent and stalled clients are abandoned; the clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const pace = { heartbeatMs: 1_000, readerStallMs: 5_000 }

/** A source whose items come when the test gives them, and a client that takes them or does not. */
function startStream(first?: string) {
  const pulls: PromiseWithResolvers<IteratorResult<string>>[] = []
  const sent: string[] = []
  const calls = { abandoned: 0, returned: 0 }
  let full: PromiseWithResolvers<number> | null = null
  const source: FrameSource<string> = {
    items: {
      next() {
        const pull = Promise.withResolvers<IteratorResult<string>>()
        pulls.push(pull)
        return pull.promise
      },
      return() {
        calls.returned += 1
        return Promise.resolve({ done: true, value: undefined })
      },
    },
    renderer: { push: (item) => item },
    fail: ({ kind }) => `error ${kind}`,
    keepAlive: { open: () => 'open', heartbeat: () => 'beat' },
    abandon: () => {
      calls.abandoned += 1
    },
  }
  const sink: FrameSink = {
    write(frames) {
      sent.push(frames)
      return full === null ? frames.length : full.promise
    },
    end: () => sent.push('[end]'),
    close: ({ message }) => sent.push(`[closed: ${message}]`),
  }
  const begun = beginStream(source, pace)
  const running = begun.then(({ pump }) => pump(sink, 'closing'))
  const give = async (item: string) => {
    pulls.at(-1)?.resolve({ done: false, value: item })
    await settle()
  }
  if (first !== undefined) void give(first)
  return {
    sent,
    calls,
    pulls,
    running,
    give,
    async finish() {
      pulls.at(-1)?.resolve({ done: true, value: undefined })
      await settle()
    },
    async break(error: Error) {
      pulls.at(-1)?.reject(error)
      await settle()
    },
    /** The outcome of the next write. */
    stall() {
      full = Promise.withResolvers()
      return full
    },
    async readOn() {
      full?.resolve(1)
      full = null
      await settle()
    },
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

async function advance(ms: number): Promise<void> {
  await settle()
  for (let passedMs = 0; passedMs < ms; passedMs += 100) {
    jest.advanceTimersByTime(100)
    await settle()
  }
}

test('a silent stream gets a heartbeat per interval', async () => {
  const { sent } = startStream('first')
  await advance(900)
  expect(sent).toEqual(['first'])
  await advance(100)
  expect(sent).toEqual(['first', 'beat'])
  await advance(3_000)
  expect(sent).toEqual(['first', 'beat', 'beat', 'beat', 'beat'])
})

test('a heartbeat comes one interval after the last write', async () => {
  const { sent, give } = startStream('first')
  await advance(900)
  await give('second')
  await advance(900)
  expect(sent).toEqual(['first', 'second'])
  await advance(100)
  expect(sent).toEqual(['first', 'second', 'beat'])
  await advance(500)
  await give('third')
  await advance(900)
  expect(sent).toEqual(['first', 'second', 'beat', 'third'])
})

test('a client that does not read gets no heartbeats, and again some once it reads', async () => {
  const { sent, give, stall, readOn } = startStream('first')
  await settle()
  stall()
  await give('second')
  await advance(4_000)
  expect(sent).toEqual(['first', 'second'])
  await readOn()
  await advance(1_000)
  expect(sent).toEqual(['first', 'second', 'beat'])
})

test('a client that does not read pauses the source', async () => {
  const { pulls, give, stall, readOn } = startStream('first')
  await settle()
  expect(pulls).toHaveLength(2)
  stall()
  await give('second')
  expect(pulls).toHaveLength(2)
  await readOn()
  expect(pulls).toHaveLength(3)
})

test('a client that stalls as long as the limit is disconnected', async () => {
  const { sent, calls, give, stall, running } = startStream('first')
  await settle()
  stall()
  await give('second')
  await advance(4_900)
  expect(calls.abandoned).toBe(0)
  await advance(100)
  await running
  expect(calls).toMatchObject({ abandoned: 1, returned: 1 })
  expect(sent).toEqual(['first', 'second', '[closed: The client stopped reading.]'])
  await advance(10_000)
  expect(sent).toHaveLength(3)
})

test('each stall is measured by itself', async () => {
  const { calls, give, stall, readOn } = startStream('first')
  await settle()
  for (const item of ['second', 'third', 'fourth']) {
    stall()
    await give(item)
    await advance(4_900)
    await readOn()
  }
  await advance(10_000)
  expect(calls.abandoned).toBe(0)
})

test.each<[string, (write: PromiseWithResolvers<number>) => void]>([
  ['resolves to 0', ({ resolve }) => resolve(0)],
  ['rejects', ({ reject }) => reject(new Error('reset'))],
])('a client whose write %s has disconnected', async (_name, disconnect) => {
  const { sent, calls, give, stall, running } = startStream('first')
  await settle()
  const write = stall()
  await give('second')
  disconnect(write)
  await running
  expect(calls).toMatchObject({ abandoned: 1, returned: 1 })
  expect(sent).toEqual(['first', 'second', '[end]'])
  expect(jest.getTimerCount()).toBe(0)
})

test('a stream without an early item opens, and then gets heartbeats', async () => {
  const { sent, give, finish } = startStream()
  await advance(900)
  await advance(100)
  expect(sent).toEqual(['open'])
  await advance(1_000)
  expect(sent).toEqual(['open', 'beat'])
  await give('first')
  await finish()
  expect(sent).toEqual(['open', 'beat', 'first', 'closing', '[end]'])
})

test('nothing follows the end, and no timer is left', async () => {
  const { sent, calls, finish, running } = startStream('first')
  await settle()
  await finish()
  await running
  await advance(10_000)
  expect(sent).toEqual(['first', 'closing', '[end]'])
  expect(calls).toEqual({ abandoned: 0, returned: 1 })
  expect(jest.getTimerCount()).toBe(0)
})

test('a failure is a frame before the closing one', async () => {
  const stream = startStream('first')
  await settle()
  await stream.break(new AppError('upstream_error', 'x'))
  await stream.running
  expect(stream.sent).toEqual(['first', 'error upstream_errorclosing', '[end]'])
  expect(jest.getTimerCount()).toBe(0)
})

test('a failure before the first item is thrown', async () => {
  const stream = startStream()
  void stream.break(new AppError('upstream_error', 'x'))
  await expect(stream.running).rejects.toMatchObject({ kind: 'upstream_error' })
  expect(stream.sent).toEqual([])
})
