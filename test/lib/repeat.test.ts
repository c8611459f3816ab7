import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { repeat } from '#lib/repeat.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** A task whose runs end when the test says so. */
function start() {
  const runs: PromiseWithResolvers<void>[] = []
  const warn = jest.fn()
  const task = repeat(
    () => {
      const run = Promise.withResolvers<void>()
      runs.push(run)
      return run.promise
    },
    { everyMs: 1_000, log: { warn }, failed: 'work failed' },
  )
  const end = async (error?: Error) => {
    if (error === undefined) runs.at(-1)?.resolve()
    else runs.at(-1)?.reject(error)
    await runPendingPromises()
  }
  return { task, runs, warn, end }
}

test('work starts after the interval, and again one interval after its end', async () => {
  const { runs, end } = start()
  jest.advanceTimersByTime(999)
  expect(runs).toHaveLength(0)
  jest.advanceTimersByTime(1)
  expect(runs).toHaveLength(1)
  jest.advanceTimersByTime(5_000)
  expect(runs).toHaveLength(1)
  await end()
  jest.advanceTimersByTime(999)
  expect(runs).toHaveLength(1)
  jest.advanceTimersByTime(1)
  expect(runs).toHaveLength(2)
})

test('soon starts idle work at once and takes the place of the timer', async () => {
  const { task, runs, end } = start()
  jest.advanceTimersByTime(500)
  task.soon()
  expect(runs).toHaveLength(1)
  await end()
  jest.advanceTimersByTime(999)
  expect(runs).toHaveLength(1)
  jest.advanceTimersByTime(1)
  expect(runs).toHaveLength(2)
})

test('soon during a run starts one more run after it, however often it is called', async () => {
  const { task, runs, end } = start()
  task.soon()
  task.soon()
  task.soon()
  expect(runs).toHaveLength(1)
  await end()
  expect(runs).toHaveLength(2)
  await end()
  expect(runs).toHaveLength(2)
})

test('work that failed waits for the interval, also after soon', async () => {
  const { task, runs, end } = start()
  task.soon()
  task.soon()
  await end(new Error('down'))
  expect(runs).toHaveLength(1)
  jest.advanceTimersByTime(1_000)
  expect(runs).toHaveLength(2)
})

test('the first of consecutive failures is logged', async () => {
  const { runs, warn, end } = start()
  const error = new Error('down')
  for (const outcome of [error, error, undefined, error]) {
    jest.advanceTimersByTime(1_000)
    await end(outcome)
  }
  expect(runs).toHaveLength(4)
  expect(warn.mock.calls).toEqual([
    ['work failed', { error }],
    ['work failed', { error }],
  ])
})

test('a stop waits for the current run and starts no other', async () => {
  const { task, runs, end } = start()
  task.soon()
  task.soon()
  let isStopped = false
  const stopping = task.stop().then(() => {
    isStopped = true
  })
  await runPendingPromises()
  expect(isStopped).toBe(false)
  await end()
  await stopping
  task.soon()
  jest.advanceTimersByTime(10_000)
  expect(runs).toHaveLength(1)
})

test('a stop between runs cancels the next one', async () => {
  const { task, runs } = start()
  await task.stop()
  jest.advanceTimersByTime(10_000)
  expect(runs).toHaveLength(0)
})

test('a stop does not wait for a run that hangs', async () => {
  const { task } = start()
  task.soon()
  const stopping = task.stop()
  jest.advanceTimersByTime(2_000)
  await stopping
})
