import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { eventually } from '#test/support/eventually.ts'
import { handlerOf, type JobsFixture, startJobsFixture } from './jobs-fixture.ts'

let fixture: JobsFixture

beforeAll(async () => {
  fixture = await startJobsFixture()
})
afterEach(() => fixture.clear())
afterAll(() => fixture.close())

const isEmpty = async () => (await fixture.rows()).length === 0

describe('a job', () => {
  test('runs once with its payload and is deleted', async () => {
    const done: unknown[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(({ payload, attempt }) => void done.push([payload, attempt])),
    )
    await fixture.add('q', { payload: { text: 'Ünïcode \u0000 and \ud800', list: [1, null] } })
    await eventually('the job is done', isEmpty)
    expect(done).toEqual([[{ text: 'Ünïcode \u0000 and \ud800', list: [1, null] }, 1]])
  })

  test('exists only if its transaction commits', async () => {
    const done: unknown[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(({ payload }) => void done.push(payload)),
    )
    const failing = fixture.database.drizzle.transaction(async (transaction) => {
      await jobs.add(transaction, { queue: 'q', key: null, payload: 'never' })
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    await fixture.add('q', { payload: 'after it' })
    await eventually('the job is done', isEmpty)
    expect(done).toEqual(['after it'])
  })

  test('is claimed by exactly one of many workers', async () => {
    const done: number[] = []
    const all = Array.from({ length: 60 }, (_, at) => at)
    for (const at of all) await fixture.add('q', { payload: at })
    for (let at = 0; at < 5; at++) {
      const jobs = await fixture.start()
      jobs.process(
        'q',
        handlerOf(({ payload }) => void done.push(Number(payload))),
      )
    }
    await eventually('all jobs are done', isEmpty)
    expect(done.toSorted((a, b) => a - b)).toEqual(all)
  })

  test('starts on another worker as soon as it is added', async () => {
    const done: unknown[] = []
    // No poll within the time limit of this test.
    const working = await fixture.start({ pollMs: 3_600_000 })
    working.process(
      'q',
      handlerOf(({ payload }) => void done.push(payload)),
    )
    for (let at = 0; at < 5; at++) {
      await fixture.add('q', { payload: at })
      await eventually('it is done', () => done.length === at + 1)
    }
  })

  test('does not start before its time', async () => {
    const done: unknown[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(({ payload }) => void done.push(payload)),
    )
    await fixture.add('q', { payload: 'tomorrow', runAt: new Date(Date.now() + 86_400_000) })
    await fixture.add('q', { payload: 'long due', runAt: new Date(0) })
    await eventually('what is due is done', async () => (await fixture.rows()).length === 1)
    expect(done).toEqual(['long due'])
    expect(await fixture.rows()).toMatchObject([{ attempts: 0, is_held: false }])
  })

  test('respects the concurrency limit of its queue', async () => {
    const open: (() => void)[] = []
    const running = { a: 0, b: 0, most: 0 }
    const jobs = await fixture.start()
    const held = (queue: 'a' | 'b') =>
      handlerOf(
        async () => {
          running[queue] += 1
          running.most = Math.max(running.most, running.a)
          await new Promise<void>((resolve) => open.push(resolve))
          running[queue] -= 1
        },
        { concurrencyMax: queue === 'a' ? 2 : 1 },
      )
    for (let at = 0; at < 6; at++) await fixture.add('a')
    await fixture.add('b')
    jobs.process('a', held('a'))
    jobs.process('b', held('b'))
    await eventually('both queues are busy', () => running.a === 2 && running.b === 1)
    const release = setInterval(() => open.shift()?.(), 5)
    await eventually('all jobs are done', isEmpty)
    clearInterval(release)
    expect(running).toEqual({ a: 0, b: 0, most: 2 })
  })

  test('has one handler per queue and worker', async () => {
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(() => {}),
    )
    expect(() =>
      jobs.process(
        'q',
        handlerOf(() => {}),
      ),
    ).toThrow('two handlers')
  })
})

describe('a job with a key', () => {
  test('is not changed by a second addition while it waits', async () => {
    await fixture.add('q', { key: 'k', payload: 'first' })
    await fixture.add('q', { key: 'k', payload: 'second' })
    await fixture.add('q', { key: 'other', payload: 'third' })
    const done: unknown[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(({ payload }) => void done.push(payload), { concurrencyMax: 1 }),
    )
    await eventually('all jobs are done', isEmpty)
    expect(done).toEqual(['first', 'third'])
  })

  test('runs once more if it is added while it runs, however often', async () => {
    const release = Promise.withResolvers<void>()
    const attempts: number[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(async ({ attempt }) => {
        attempts.push(attempt)
        if (attempts.length === 1) await release.promise
      }),
    )
    await fixture.add('q', { key: 'k' })
    await eventually('it runs', () => attempts.length === 1)
    for (let at = 0; at < 3; at++) await fixture.add('q', { key: 'k' })
    expect(await fixture.rows()).toHaveLength(1)
    release.resolve()
    await eventually('all jobs are done', isEmpty)
    expect(attempts).toEqual([1, 1])
  })

  test('does not start before the transaction that adds it again commits', async () => {
    await fixture.add('q', { key: 'k', payload: 'waits' })
    let isCommitted = false
    const seen: boolean[] = []
    const adding = await fixture.start()
    const working = await fixture.start()
    await fixture.database.drizzle.transaction(async (transaction) => {
      await adding.add(transaction, { queue: 'q', key: 'k', payload: 'again' })
      working.process(
        'q',
        handlerOf(() => void seen.push(isCommitted)),
      )
      await Bun.sleep(200)
      isCommitted = true
    })
    await eventually('it is done', isEmpty)
    expect(seen).toEqual([true])
  })
})

describe('a job that fails', () => {
  test('is retried with backoff, then failed permanently and deleted', async () => {
    const tries: number[] = []
    const givenUp: unknown[] = []
    const jobs = await fixture.start()
    jobs.process(
      'q',
      handlerOf(
        ({ attempt }) => {
          tries.push(attempt)
          throw new Error(`try ${attempt}`)
        },
        {
          attemptsMax: 3,
          onFailed: async ({ payload, attempt }, error) => {
            givenUp.push([payload, attempt, String(error)])
          },
        },
      ),
    )
    await fixture.add('q', { payload: 'p' })
    await eventually('it failed permanently', isEmpty)
    expect(tries).toEqual([1, 2, 3])
    expect(givenUp).toEqual([['p', 3, 'Error: try 3']])
  })

  test('waits for the Retry-After of its error', async () => {
    const jobs = await fixture.start()
    const failed = () => {
      throw new AppError('rate_limit_exceeded', 'Slow down.', { retryAfterS: 1_000 })
    }
    jobs.process('q', handlerOf(failed, { attemptsMax: 9 }))
    await fixture.add('q', { key: 'k' })
    await eventually(
      'it failed',
      async () => (await fixture.rows())[0]?.last_error === 'Slow down.',
    )
    const [row] = await fixture.database.drizzle.execute<{ pause_s: number }>(
      'select extract(epoch from run_at - now())::float8 as pause_s from job',
    )
    expect(row?.pause_s).toBeGreaterThan(900)
    expect(row?.pause_s).toBeLessThanOrEqual(1_000)
  })

  test('repeats a failed failure handler', async () => {
    let asked = 0
    const jobs = await fixture.start()
    const onFailed = async () => {
      asked += 1
      if (asked === 1) throw new Error('no way to tell')
    }
    const fail = () => {
      throw new Error('no')
    }
    jobs.process('q', handlerOf(fail, { onFailed }))
    await fixture.add('q')
    await eventually('it failed permanently', isEmpty)
    expect(asked).toBe(2)
  })

  test('that was added again meanwhile runs again after its permanent failure', async () => {
    const running = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    let tries = 0
    const jobs = await fixture.start()
    const run = async () => {
      tries += 1
      running.resolve()
      if (tries > 1) return
      await release.promise
      throw new Error('no')
    }
    jobs.process('q', handlerOf(run))
    await fixture.add('q', { key: 'k' })
    await running.promise
    await fixture.add('q', { key: 'k' })
    release.resolve()
    await eventually('all jobs are done', isEmpty)
    expect(tries).toBe(2)
  })
})
