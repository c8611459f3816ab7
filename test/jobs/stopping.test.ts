import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { handlerOf, type JobsFixture, startJobsFixture, untilAborted } from './jobs-fixture.ts'

let fixture: JobsFixture

beforeAll(async () => {
  fixture = await startJobsFixture()
})
afterEach(() => fixture.clear())
afterAll(() => fixture.close())

const isEmpty = async () => (await fixture.rows()).length === 0

describe('a stopping worker', () => {
  test('aborts running jobs, waits for them and releases them without counting the attempt', async () => {
    const jobs = await fixture.start()
    let isRunning = false
    let isOver = false
    jobs.process(
      'q',
      handlerOf(async ({ signal }) => {
        isRunning = true
        await untilAborted(signal).finally(() => {
          isOver = true
        })
      }),
    )
    await fixture.add('q')
    // The row is held before the worker learns of its claim.
    await eventually('it runs', () => isRunning)
    expect(await fixture.rows()).toMatchObject([{ is_held: true }])
    await jobs.close()
    expect(isOver).toBe(true)
    expect(await fixture.rows()).toMatchObject([{ attempts: 0, is_held: false }])
  })

  test('does not wait forever for a job that ignores its signal', async () => {
    const jobs = await fixture.start({ closeWaitMaxMs: 50 })
    let runs = false
    const release = Promise.withResolvers<void>()
    jobs.process(
      'q',
      handlerOf(() => {
        runs = true
        return release.promise
      }),
    )
    await fixture.add('q')
    await eventually('it runs', () => runs)
    await jobs.close()
    // No other worker may start it while it runs.
    expect(await fixture.rows()).toMatchObject([{ is_held: true }])
    release.resolve()
    await eventually('it is done', isEmpty)
  })
})
