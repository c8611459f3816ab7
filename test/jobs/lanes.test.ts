import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { handlerOf, type JobsFixture, startJobsFixture } from './jobs-fixture.ts'

let fixture: JobsFixture

beforeAll(async () => {
  fixture = await startJobsFixture()
})
afterEach(() => fixture.clear())
afterAll(() => fixture.close())

const isEmpty = async () => (await fixture.rows()).length === 0

async function addMany(lane: string, count: number): Promise<void> {
  for (let at = 0; at < count; at++) await fixture.add('q', { lane, payload: `${lane}${at}` })
}

test('a lane with few jobs does not wait for one with many; each runs oldest first', async () => {
  await addMany('many', 30)
  await addMany('few', 2)
  const done: unknown[] = []
  const jobs = await fixture.start()
  jobs.process(
    'q',
    handlerOf(({ payload }) => void done.push(payload), { concurrencyMax: 1, laneJobsMax: 1 }),
  )
  await eventually('all jobs are done', isEmpty)
  const ofMany = done.filter((payload) => String(payload).startsWith('many'))
  expect(ofMany).toEqual(Array.from({ length: 30 }, (_, at) => `many${at}`))
  // By age, they would be the last two.
  expect(done.slice(0, 30)).toContain('few0')
  expect(done.indexOf('few0')).toBeLessThan(done.indexOf('few1'))
})

test('stuck jobs of one lane leave slots to the others', async () => {
  await addMany('stuck', 8)
  const release = Promise.withResolvers<void>()
  let stuck = 0
  const done: unknown[] = []
  const jobs = await fixture.start()
  jobs.process(
    'q',
    handlerOf(
      async ({ payload }) => {
        if (!String(payload).startsWith('stuck')) return void done.push(payload)
        stuck += 1
        await release.promise
      },
      { concurrencyMax: 3, laneJobsMax: 2 },
    ),
  )
  await eventually('the lane is full', () => stuck === 2)
  await addMany('other', 4)
  await eventually('the other lane is done', () => done.length === 4)
  expect(done).toEqual(['other0', 'other1', 'other2', 'other3'])
  expect(stuck).toBe(2)
  release.resolve()
  await eventually('all jobs are done', isEmpty)
  expect(stuck).toBe(8)
})
