import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { backgroundQueueName } from '#responses/background-queue.ts'
import type { QueuedResponse } from '#responses/stored.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import {
  controlledGeneration,
  eventsOf,
  framesOf,
  immediately,
  planOf,
  planQueued,
  queuedOf,
  type RunsFixture,
  readAll,
  readOn,
  startRunsFixture,
  typesOf,
  watchFrom,
} from './runs-fixture.ts'
import { ann, enqueue } from './store-fixture.ts'

let fixture: RunsFixture
beforeEach(async () => {
  fixture = await startRunsFixture()
})
afterEach(() => fixture.close())

const chunks = ['one ', 'two']
const answering = planQueued(immediately(eventsOf(chunks)))

/** Records the ids of the prepared responses in order. */
function recording(ids: string[], prepare = answering) {
  return async (queued: QueuedResponse) => {
    ids.push(queued.id)
    return prepare(queued)
  }
}

const lastType = (frames: string) => typesOf(frames).at(-1)

describe('a background response', () => {
  test('streams from the queue to its end to clients that watch from the start', async () => {
    const [accepts, runs] = [await fixture.replica(), await fixture.replica()]
    const queued = queuedOf()
    await accepts.enqueue(queued)
    expect(await runs.find(ann, queued.id)).toMatchObject({ status: 'queued' })
    const watchers = [
      readOn(await accepts.watch(ann, queued.id, watchFrom(-1))),
      readOn(await runs.watch(ann, queued.id, watchFrom(-1))),
    ]
    runs.processQueue(answering)
    const [one, other] = await Promise.all(watchers.map(({ whole }) => whole))
    expect(typesOf(one ?? '').slice(0, 3)).toEqual([
      'response.created',
      'response.queued',
      'response.in_progress',
    ])
    expect(lastType(one ?? '')).toBe('response.completed')
    const numbers = framesOf(one ?? '').map((frame) => /"sequence_number":(\d+)/.exec(frame)?.[1])
    expect(numbers).toEqual(numbers.map((_, at) => String(at)))
    expect(other).toBe(one ?? '')
    expect(await readAll(await accepts.watch(ann, queued.id, watchFrom(4)))).toBe(
      framesOf(one ?? '')
        .slice(5)
        .join(''),
    )
    expect(await accepts.find(ann, queued.id)).toMatchObject({ status: 'completed' })
  })

  test('continues without readers', async () => {
    const runs = await fixture.replica({ settings: { abandonMs: 0 } })
    const generation = controlledGeneration()
    runs.processQueue(planQueued(generation.generate))
    const queued = queuedOf()
    await runs.enqueue(queued)
    await eventually('it runs', () => generation.signal() !== undefined)
    expect(await runs.find(ann, queued.id)).toMatchObject({ status: 'in_progress' })
    generation.give(...eventsOf(chunks))
    const whole = await readAll(await runs.watch(ann, queued.id, watchFrom(-1)))
    expect(lastType(whole)).toBe('response.completed')
  })

  test('that cannot start, or fails before its first output, fails in its stream', async () => {
    const faults: unknown[] = []
    const log = { ...quietLog, error: (_: string, fields?: object) => void faults.push(fields) }
    const runs = await fixture.replica({ log })
    const error = new AppError('model_not_found', 'There is no such model.')
    const [early, late, broken] = [queuedOf(), queuedOf(), queuedOf()]
    runs.processQueue(async (queued) => {
      if (queued.id === early.id) throw error
      if (queued.id === broken.id) throw new Error('an internal fault')
      const generation = controlledGeneration()
      generation.break(error)
      return planQueued(generation.generate)(queued)
    })
    for (const [queued, code] of [
      [early, 'model_not_found'],
      [late, 'model_not_found'],
      [broken, 'internal_error'],
    ] as const) {
      await runs.enqueue(queued)
      const whole = await readAll(await runs.watch(ann, queued.id, watchFrom(-1)))
      expect(typesOf(whole).slice(-2)).toEqual(['error', 'response.failed'])
      const object = await runs.find(ann, queued.id)
      expect(object).toMatchObject({ status: 'failed', error: { code } })
    }
    expect(faults).toEqual([{ response_id: broken.id, error: new Error('an internal fault') }])
  })
})

describe('the background queue', () => {
  test('runs responses in the order of acceptance, each on one worker', async () => {
    const prepared: string[][] = [[], []]
    const oneAtATime = { settings: { backgroundRunningMax: 1 } }
    const replicas = [await fixture.replica(oneAtATime), await fixture.replica(oneAtATime)]
    const waiting = Array.from({ length: 40 }, () => queuedOf())
    for (const queued of waiting) await replicas[0]?.enqueue(queued)
    for (const [at, runs] of replicas.entries()) runs.processQueue(recording(prepared[at] ?? []))
    await eventually('all were prepared', () => prepared.flat().length === waiting.length)
    const ids = waiting.map(({ id }) => id)
    expect(prepared.flat().toSorted()).toEqual(ids.toSorted())
    for (const own of prepared) expect(own).toEqual(ids.filter((id) => own.includes(id)))
    for (const id of ids) {
      const whole = await readAll(await replicas[0]?.watch(ann, id, watchFrom(-1)))
      expect(lastType(whole)).toBe('response.completed')
    }
  })

  test('rejects responses over the limit of a key until one of them has ended', async () => {
    const runs = await fixture.replica({ settings: { backgroundPerKeyMax: 2 } })
    const [one, two, three] = [queuedOf(), queuedOf(), queuedOf()]
    await runs.enqueue(one)
    await runs.enqueue(two)
    const error = await runs.enqueue(three).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ kind: 'rate_limit_exceeded', status: 429 })
    expect(error).toHaveProperty('retryAfterS', expect.any(Number))
    expect(await runs.find(ann, three.id)).toBeUndefined()
    await runs.enqueue(queuedOf({ keyId: 'another' }))
    await runs.cancel(ann, one.id)
    await runs.enqueue(three)
  })

  test('runs no more responses on a worker than its limit, and starts the next when one ends', async () => {
    const runs = await fixture.replica({ settings: { backgroundRunningMax: 2 } })
    const generations = new Map<string, ReturnType<typeof controlledGeneration>>()
    const waiting = Array.from({ length: 3 }, () => queuedOf())
    for (const queued of waiting) await runs.enqueue(queued)
    runs.processQueue(async (queued) => {
      const generation = controlledGeneration()
      generations.set(queued.id, generation)
      return planQueued(generation.generate)(queued)
    })
    await eventually('two run', () => runs.running() === 2)
    const [first, , last] = waiting
    expect(await runs.find(ann, last?.id ?? '')).toMatchObject({ status: 'queued' })
    expect(generations.size).toBe(2)
    generations.get(first?.id ?? '')?.give(...eventsOf(chunks))
    await eventually('the third runs', () => generations.size === 3 && runs.running() === 2)
  })

  test('keeps what a stopping worker does not start for the next one', async () => {
    const stopping = await fixture.replica()
    const prepared: string[] = []
    stopping.drain()
    stopping.processQueue(recording(prepared))
    const queued = queuedOf()
    await stopping.enqueue(queued)
    const first = stopping.start(planOf(immediately(eventsOf(chunks))))
    await first.ended()
    await stopping.close()
    expect(prepared).toEqual([])
    const next = await fixture.replica({ soleProcess: true })
    next.processQueue(recording(prepared))
    const whole = await readAll(await next.watch(ann, queued.id, watchFrom(-1)))
    expect(lastType(whole)).toBe('response.completed')
    expect(await next.find(ann, first.id)).toMatchObject({ status: 'completed' })
  })

  test('releases a response that is being prepared when its worker drains', async () => {
    const [draining, next] = [await fixture.replica(), await fixture.replica()]
    const preparingStarted = Promise.withResolvers<void>()
    const drained = Promise.withResolvers<void>()
    const queued = queuedOf()
    const drainingAnswer = planQueued(immediately(eventsOf(['from the draining worker'])))
    draining.processQueue(async (accepted) => {
      preparingStarted.resolve()
      await drained.promise
      return drainingAnswer(accepted)
    })
    await draining.enqueue(queued)
    await preparingStarted.promise
    draining.drain()
    drained.resolve()
    next.processQueue(answering)
    const whole = await readAll(await next.watch(ann, queued.id, watchFrom(-1)))
    expect(lastType(whole)).toBe('response.completed')
    expect(whole).toContain(chunks.join(''))
    expect(whole).not.toContain('draining')
    expect(draining.running()).toBe(0)
    const jobs = async () => fixture.database.drizzle.execute('select attempts from job')
    await eventually('its job is finished', async () => (await jobs()).length === 0)
  })

  test('fails a response whose claim was lost, and goes on', async () => {
    let isLost = false
    const runs = await fixture.replica({
      wrapStore: (store) => ({
        ...store,
        async claimQueued(id, runnerId) {
          const isClaimed = await store.claimQueued(id, runnerId)
          if (isLost || !isClaimed) return isClaimed
          isLost = true
          throw new Error('the connection is lost')
        },
      }),
    })
    runs.processQueue(answering)
    const [unlucky, next] = [queuedOf(), queuedOf()]
    await runs.enqueue(unlucky)
    const whole = await readAll(await runs.watch(ann, unlucky.id, watchFrom(-1)))
    expect(lastType(whole)).toBe('response.failed')
    expect(await runs.find(ann, unlucky.id)).toMatchObject({ error: { code: 'worker_lost' } })
    await runs.enqueue(next)
    const frames = await readAll(await runs.watch(ann, next.id, watchFrom(-1)))
    expect(lastType(frames)).toBe('response.completed')
  })

  test('holds a job for each response, which workers of other versions find by this name', async () => {
    const runs = await fixture.replica()
    const queued = queuedOf()
    await runs.enqueue(queued)
    const jobs = await fixture.database.drizzle.execute('select queue, key from job')
    expect([...jobs]).toEqual([{ queue: 'response', key: queued.id }])
  })

  test('runs responses that an earlier version queued without a job', async () => {
    const runs = await fixture.replica()
    const queued = Array.from({ length: 3 }, () => queuedOf())
    for (const each of queued) expect(await enqueue(runs.store, each)).toBe(true)
    runs.processQueue(answering)
    for (const { id } of queued) {
      const whole = await readAll(await runs.watch(ann, id, watchFrom(-1)))
      expect(lastType(whole)).toBe('response.completed')
    }
  })

  test('finishes the job of a response that an earlier version has claimed', async () => {
    const runs = await fixture.replica()
    const queued = queuedOf()
    await runs.enqueue(queued)
    await runs.store.claimQueued(queued.id, 'a worker of an earlier version')
    const prepared: string[] = []
    runs.processQueue(recording(prepared))
    const jobs = async () => fixture.database.drizzle.execute('select id from job')
    await eventually('its job is finished', async () => (await jobs()).length === 0)
    expect(prepared).toEqual([])
    expect(await runs.find(ann, queued.id)).toMatchObject({ status: 'in_progress' })
  })

  test('fails a response whose every attempt killed its worker', async () => {
    const runs = await fixture.replica()
    const queued = queuedOf()
    await runs.enqueue(queued)
    await fixture.database.drizzle.execute(
      `update job set attempts = 1000 where queue = '${backgroundQueueName}'`,
    )
    const prepared: string[] = []
    runs.processQueue(recording(prepared))
    const whole = await readAll(await runs.watch(ann, queued.id, watchFrom(-1)))
    expect(typesOf(whole).slice(-2)).toEqual(['error', 'response.failed'])
    expect(await runs.find(ann, queued.id)).toMatchObject({ error: { code: 'worker_lost' } })
    expect(prepared).toEqual([])
  })
})
