import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { fileURLToPath } from 'node:url'
import { openDatabase } from '#db/client.ts'
import { createJobs } from '#jobs/jobs.ts'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { startTcpProxy } from '#test/support/tcp-proxy.ts'
import { handlerOf, type JobsFixture, startJobsFixture, untilAborted } from './jobs-fixture.ts'

let fixture: JobsFixture
const places: TestPlace[] = []

beforeAll(async () => {
  fixture = await startJobsFixture()
})
afterEach(async () => {
  await fixture.clear()
  for (const place of places.splice(0)) await place.remove()
})
afterAll(() => fixture.close())

const isEmpty = async () => (await fixture.rows()).length === 0

/** As if another worker had claimed all jobs. */
function loseLeases(claim: string): Promise<unknown> {
  return fixture.database.drizzle.execute(
    `update job set locked_by = '${claim}', locked_until = now() + interval '1 hour'`,
  )
}

describe('a lease', () => {
  test('is renewed while the job runs', async () => {
    const release = Promise.withResolvers<void>()
    let begun = 0
    const run = async () => {
      begun += 1
      await release.promise
    }
    for (let at = 0; at < 3; at++) {
      const jobs = await fixture.start({ leaseMs: 1_500 })
      jobs.process('q', handlerOf(run))
    }
    await fixture.add('q')
    await eventually('it runs', () => begun > 0)
    const begunAt = performance.now()
    await eventually('a lease has passed', () => performance.now() - begunAt > 2_000)
    expect(begun).toBe(1)
    release.resolve()
    await eventually('it is done', isEmpty)
    expect(begun).toBe(1)
  })

  test('that is lost aborts the job, and its outcome is ignored', async () => {
    const stranger = crypto.randomUUID()
    const aborted: unknown[] = []
    const outcomes = ['succeeds', 'fails']
    const jobs = await fixture.start({ leaseMs: 200 })
    jobs.process(
      'q',
      handlerOf(async ({ payload, signal }) => {
        await untilAborted(signal).catch(() => aborted.push(payload))
        if (payload === 'fails') throw new Error('too late')
      }),
    )
    for (const payload of outcomes) await fixture.add('q', { key: payload, payload })
    await eventually('both run', async () => (await fixture.rows()).every((row) => row.is_held))
    await loseLeases(stranger)
    await eventually('both were aborted', () => aborted.length === 2)
    await jobs.close()
    const row = { attempts: 1, is_held: true, last_error: null }
    expect(await fixture.rows()).toEqual([
      { key: 'succeeds', ...row },
      { key: 'fails', ...row },
    ])
  })

  test('that expired is claimed by another worker as a new attempt', async () => {
    await fixture.add('q', { payload: 'p' })
    await fixture.database.drizzle.execute(`
      update job set attempts = 1, locked_by = gen_random_uuid(),
        locked_until = now() - interval '1 second'`)
    const done: unknown[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(({ attempt }) => void done.push(attempt), { attemptsMax: 3 }),
    )
    await eventually('it is done', isEmpty)
    expect(done).toEqual([2])
  })

  test('of a job that kills every worker is not granted forever', async () => {
    await fixture.add('q', { payload: 'deadly' })
    await fixture.database.drizzle.execute(`
      update job set attempts = 3, locked_by = gen_random_uuid(),
        locked_until = now() - interval '1 second'`)
    const calls: unknown[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(() => void calls.push('run'), {
        attemptsMax: 3,
        onFailed: async ({ payload }, error) => void calls.push([payload, String(error)]),
      }),
    )
    await eventually('it failed permanently', isEmpty)
    expect(calls).toEqual([['deadly', 'Error: every worker that ran this job died']])
  })
})

describe('a killed worker', () => {
  test('loses no job: another worker runs it at once, long before the lease expires', async () => {
    const place = await createTestPlace()
    places.push(place)
    const child = Bun.spawn(
      [
        process.execPath,
        fileURLToPath(new URL('./hold-job.ts', import.meta.url)),
        place.dataFolder,
        place.databaseUrl ?? '',
      ],
      { stdout: 'pipe', stderr: 'inherit' },
    )
    const reader = child.stdout.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('at work\n')
    child.kill('SIGKILL')
    await child.exited
    const database = await openDatabase({ ...place, connectionsMax: 2, log: quietLog })
    const timings = { leaseMs: 3_600_000, lostAfterMs: 100, pollMs: 50 }
    const done: unknown[] = []
    const startWith = async (settleMs: number) => {
      const jobs = await createJobs({ database, log: quietLog, timings: { ...timings, settleMs } })
      jobs.process(
        'q',
        handlerOf(({ payload, attempt }) => void done.push([payload, attempt]), { attemptsMax: 3 }),
      )
      return jobs
    }
    // After an outage of the database, others may not have connected yet.
    const unsettled = await startWith(3_600_000)
    await eventually('the waiting job is done', () => done.length > 0)
    await Bun.sleep(300)
    expect(done).toEqual([['waiting', 1]])
    await unsettled.close()
    const jobs = await startWith(0)
    const left = async () => (await database.drizzle.execute('select id from job')).length
    await eventually('all jobs are done', async () => (await left()) === 0)
    expect(done.toSorted()).toEqual([
      ['held', 2],
      ['waiting', 1],
    ])
    await jobs.close()
    await database.close()
  })
})

test.skipIf(serverUrl === undefined)(
  'a connected worker keeps its jobs though it renews no lease, and one of an earlier version too',
  async () => {
    const ran: unknown[] = []
    const leaseMs = 3_600_000
    const suspended = await fixture.start({ leaseMs })
    suspended.process(
      'q',
      handlerOf(({ signal }) => untilAborted(signal), { concurrencyMax: 2 }),
    )
    for (const payload of ['own', 'earlier']) await fixture.add('q', { key: payload, payload })
    await eventually('both run', async () => (await fixture.rows()).every((row) => row.is_held))
    await fixture.database.drizzle.execute(
      `update job set locked_by = '${crypto.randomUUID()}' where key = 'earlier'`,
    )
    const { place } = fixture.database
    const database = await openDatabase({ ...place, connectionsMax: 2, log: quietLog })
    const timings = { leaseMs, lostAfterMs: 0, settleMs: 0, pollMs: 20 }
    const other = await createJobs({ database, log: quietLog, timings })
    other.process(
      'q',
      handlerOf(({ payload }) => void ran.push(payload), { attemptsMax: 3 }),
    )
    await fixture.add('q', { key: 'new', payload: 'new' })
    await eventually('the other worker runs', () => ran.length > 0)
    await Bun.sleep(300)
    await other.close()
    await database.close()
    expect(ran).toEqual(['new'])
  },
)

describe.skipIf(serverUrl === undefined)('a database outage', () => {
  test('aborts no job: completions are recorded after it', async () => {
    const direct = new URL(fixture.database.place.databaseUrl ?? '')
    const proxy = await startTcpProxy({ host: direct.hostname, port: Number(direct.port) })
    const indirect = new URL(direct)
    indirect.port = String(proxy.port)
    const place = { ...fixture.database.place, databaseUrl: indirect.href }
    const database = await openDatabase({ ...place, connectionsMax: 2, log: quietLog })
    const jobs = await createJobs({ database, log: quietLog, timings: { pollMs: 50 } })
    const release = Promise.withResolvers<void>()
    const done: unknown[] = []
    jobs.process(
      'q',
      handlerOf(async ({ payload }) => {
        if (payload === 'slow') await release.promise
        done.push(payload)
      }),
    )
    await fixture.add('q', { payload: 'slow' })
    await eventually('it runs', async () => (await fixture.rows())[0]?.is_held === true)
    await proxy.goDown()
    release.resolve()
    await eventually('it has run', () => done.length === 1)
    await fixture.add('q', { payload: 'added meanwhile' })
    await proxy.comeUp()
    await eventually('all jobs are done', isEmpty)
    expect(done).toEqual(['slow', 'added meanwhile'])
    await jobs.close()
    await database.close()
    await proxy.stop()
  })
})
