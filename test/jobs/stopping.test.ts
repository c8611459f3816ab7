import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type JobsWorld, startJobsWorld, untilAborted, worker } from './jobs-world.ts'

let world: JobsWorld

beforeAll(async () => {
  world = await startJobsWorld()
})
afterEach(() => world.clear())
afterAll(() => world.close())

const isEmpty = async () => (await world.rows()).length === 0

describe('a stopping worker', () => {
  test('aborts running jobs, waits for them and releases them without counting the attempt', async () => {
    const jobs = await world.start()
    let isOver = false
    jobs.process(
      'q',
      worker(async ({ signal }) => {
        await untilAborted(signal).finally(() => {
          isOver = true
        })
      }),
    )
    await world.add('q')
    await eventually('it runs', async () => (await world.rows())[0]?.is_held === true)
    await jobs.close()
    expect(isOver).toBe(true)
    expect(await world.rows()).toMatchObject([{ attempts: 0, is_held: false }])
  })

  test('does not wait forever for a job that ignores its signal', async () => {
    const jobs = await world.start({ closeWaitMaxMs: 50 })
    let runs = false
    const letGo = Promise.withResolvers<void>()
    jobs.process(
      'q',
      worker(() => {
        runs = true
        return letGo.promise
      }),
    )
    await world.add('q')
    await eventually('it runs', () => runs)
    await jobs.close()
    // No other worker may start it while it runs.
    expect(await world.rows()).toMatchObject([{ is_held: true }])
    letGo.resolve()
    await eventually('it is done', isEmpty)
  })
})
