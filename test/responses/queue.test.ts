import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import type { QueuedResponse } from '#responses/stored.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  answerOf,
  atOnce,
  framesOf,
  jobOf,
  led,
  preparing,
  queuedOf,
  type RunsWorld,
  readAll,
  readOn,
  startRunsWorld,
  typesOf,
  watchFrom,
} from './runs-world.ts'
import { ann } from './store-world.ts'

let world: RunsWorld
beforeEach(async () => {
  world = await startRunsWorld()
})
afterEach(() => world.close())

const words = ['one ', 'two']
const answering = preparing(atOnce(answerOf(words)))

/** Says what it was given, in that order. */
function noting(noted: string[], prepare = answering) {
  return async (queued: QueuedResponse) => {
    noted.push(queued.id)
    return prepare(queued)
  }
}

describe('a background response', () => {
  test('goes from the queue to its end in one stream, for those who watch from the start', async () => {
    const [accepts, runs] = [await world.replica(), await world.replica()]
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
    expect(typesOf(one ?? '').at(-1)).toBe('response.completed')
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

  test('goes on though nobody reads it', async () => {
    const runs = await world.replica({ settings: { abandonMs: 0 } })
    const generation = led()
    runs.processQueue(preparing(generation.generate))
    const queued = queuedOf()
    await runs.enqueue(queued)
    await eventually('it runs', () => generation.signal() !== undefined)
    expect(await runs.find(ann, queued.id)).toMatchObject({ status: 'in_progress' })
    expect(generation.committed()).toBe(false)
    generation.give(...answerOf(words))
    const whole = await readAll(await runs.watch(ann, queued.id, watchFrom(-1)))
    expect(typesOf(whole).at(-1)).toBe('response.completed')
  })

  test('that cannot begin, or fails before its first output, has failed in its stream', async () => {
    const runs = await world.replica()
    const error = new AppError('model_not_found', 'There is no such model.')
    const [early, late, broken] = [queuedOf(), queuedOf(), queuedOf()]
    runs.processQueue(async (queued) => {
      if (queued.id === early.id) throw error
      if (queued.id === broken.id) throw new Error('a fault of ours')
      const generation = led()
      generation.break(error)
      return preparing(generation.generate)(queued)
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
  })
})

describe('the queue', () => {
  test('gives the oldest first, each to one process only', async () => {
    const noted: string[][] = [[], []]
    const replicas = [await world.replica(), await world.replica()]
    const waiting = Array.from({ length: 40 }, (_, at) =>
      queuedOf({ createdAt: new Date(1_700_000_000_000 + at) }),
    )
    for (const queued of waiting.toReversed()) await replicas[0]?.enqueue(queued)
    for (const [at, runs] of replicas.entries()) runs.processQueue(noting(noted[at] ?? []))
    await eventually('all were taken', () => noted.flat().length === waiting.length)
    const ids = waiting.map(({ id }) => id)
    expect(noted.flat().toSorted()).toEqual(ids.toSorted())
    for (const own of noted) expect(own).toEqual(ids.filter((id) => own.includes(id)))
    for (const id of ids) {
      const whole = await readAll(await replicas[0]?.watch(ann, id, watchFrom(-1)))
      expect(typesOf(whole).at(-1)).toBe('response.completed')
    }
  })

  test('refuses what a key has too many of, until one of them is over', async () => {
    const runs = await world.replica({ settings: { backgroundPerKeyMax: 2 } })
    const [one, two, three] = [queuedOf(), queuedOf(), queuedOf()]
    await runs.enqueue(one)
    await runs.enqueue(two)
    const refusal = await runs.enqueue(three).catch((error: unknown) => error)
    expect(refusal).toMatchObject({ kind: 'rate_limit_exceeded', status: 429 })
    expect(refusal).toHaveProperty('retryAfterS', expect.any(Number))
    expect(await runs.find(ann, three.id)).toBeUndefined()
    await runs.enqueue(queuedOf({ keyId: 'another' }))
    await runs.cancel(ann, one.id)
    await runs.enqueue(three)
  })

  test('lets no more run at once than may, and takes the next when one is over', async () => {
    const runs = await world.replica({ settings: { backgroundRunningMax: 2 } })
    const generations = new Map<string, ReturnType<typeof led>>()
    const waiting = Array.from({ length: 3 }, (_, at) => queuedOf({ createdAt: new Date(at) }))
    for (const queued of waiting) await runs.enqueue(queued)
    runs.processQueue(async (queued) => {
      const generation = led()
      generations.set(queued.id, generation)
      return preparing(generation.generate)(queued)
    })
    await eventually('two run', () => generations.size === 2)
    const [first, , last] = waiting
    expect(await runs.find(ann, last?.id ?? '')).toMatchObject({ status: 'queued' })
    generations.get(first?.id ?? '')?.give(...answerOf(words))
    await eventually('the third runs', () => generations.size === 3)
    expect(runs.running()).toBe(2)
  })

  test('keeps what a process that stops does not take, for the next one', async () => {
    const stopping = await world.replica()
    const noted: string[] = []
    stopping.drain()
    stopping.processQueue(noting(noted))
    const queued = queuedOf()
    await stopping.enqueue(queued)
    const first = stopping.start(jobOf(atOnce(answerOf(words))))
    await first.ended()
    await stopping.close()
    expect(noted).toEqual([])
    const next = await world.replica({ soleProcess: true })
    next.processQueue(noting(noted))
    const whole = await readAll(await next.watch(ann, queued.id, watchFrom(-1)))
    expect(typesOf(whole).at(-1)).toBe('response.completed')
    expect(await next.find(ann, first.id)).toMatchObject({ status: 'completed' })
  })

  test('loses nobody for good when the answer to a claim is lost', async () => {
    let isLost = false
    const runs = await world.replica({
      storeBehind: (store) => ({
        ...store,
        async claim(runnerId, countMax) {
          const claimed = await store.claim(runnerId, countMax)
          if (isLost || claimed.length === 0) return claimed
          isLost = true
          throw new Error('the connection is lost')
        },
      }),
    })
    runs.processQueue(answering)
    const [unlucky, next] = [queuedOf(), queuedOf()]
    await runs.enqueue(unlucky)
    const whole = await readAll(await runs.watch(ann, unlucky.id, watchFrom(-1)))
    expect(typesOf(whole).at(-1)).toBe('response.failed')
    expect(await runs.find(ann, unlucky.id)).toMatchObject({ error: { code: 'worker_lost' } })
    await runs.enqueue(next)
    const answer = await readAll(await runs.watch(ann, next.id, watchFrom(-1)))
    expect(typesOf(answer).at(-1)).toBe('response.completed')
  })
})
