import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import { createBackgroundQueue } from '#responses/background-queue.ts'
import type { ResponseStore } from '#responses/store.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** When a worker searches for queued responses without a job. The clock advances by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms)
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

test('queued responses without a job are searched for at once and every minute, until the queue is closed', async () => {
  let searches = 0
  const store = { addMissingJobs: async () => void searches++ } as unknown as ResponseStore
  const queue = createBackgroundQueue({
    store,
    jobs: { add: async () => {}, process: () => ({ stop() {} }) },
    runnerId: 'own',
    settings: loadConfig({}).responses,
    start() {
      throw new Error('nothing is queued')
    },
    renderTerminalFrames: () => '',
    log: quietLog,
  })
  queue.process(() => Promise.reject(new Error('nothing is queued')))
  await pass(0)
  expect(searches).toBe(1)
  await pass(60_000)
  expect(searches).toBe(2)
  await queue.close()
  await pass(600_000)
  expect([searches, jest.getTimerCount()]).toEqual([2, 0])
})
