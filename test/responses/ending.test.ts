import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import {
  controlledGeneration,
  eventsOf,
  immediately,
  planOf,
  planQueued,
  queuedOf,
  type Replica,
  type RunsFixture,
  readAll,
  readOn,
  startPartialRun,
  startRunsFixture,
  textChunks,
  typesOf,
  watchFrom,
} from './runs-fixture.ts'
import { ann } from './store-fixture.ts'

let fixture: RunsFixture
let here: Replica
let there: Replica

beforeAll(async () => {
  fixture = await startRunsFixture()
  here = await fixture.replica()
  there = await fixture.replica()
})
afterAll(() => fixture.close())

describe('cancelling', () => {
  for (const place of ['on its worker', 'on another worker']) {
    test(`ends a run, aborts its upstream and keeps its output: cancelled ${place}`, async () => {
      const { run, reader, generation, rest } = await startPartialRun(here)
      const isStored = async () => (await there.find(ann, run.id)) !== undefined
      await eventually('it is stored', isStored)
      const remote = readOn(await there.watch(ann, run.id, watchFrom(-1)))
      const asked = place === 'on its worker' ? here : there
      const object = await asked.cancel(ann, run.id)
      expect(object).toMatchObject({ id: run.id, status: 'cancelled' })
      expect(JSON.stringify(object?.output)).toContain('one two ')
      expect(generation.signal()?.aborted).toBe(true)
      generation.give(...rest)
      const whole = await reader.whole
      expect(typesOf(whole).at(-1)).toBe('response.incomplete')
      expect(whole).not.toContain('three')
      expect(await remote.whole).toBe(whole)
      expect(await readAll(await there.watch(ann, run.id, watchFrom(-1)))).toBe(whole)
      for (const runs of [here, there]) {
        expect(await runs.find(ann, run.id)).toMatchObject({ status: 'cancelled' })
      }
      expect((await run.ended()).status).toBe('cancelled')
    })
  }

  test('leaves a finished response unchanged', async () => {
    const run = here.start(planOf(immediately(eventsOf(textChunks))))
    const object = await run.ended()
    for (const runs of [here, there]) {
      expect(await runs.cancel(ann, run.id)).toEqual(JSON.parse(JSON.stringify(object)))
    }
  })

  test('removes a response from the queue and ends its streams', async () => {
    const queued = queuedOf()
    await here.enqueue(queued)
    const watcher = readOn(await here.watch(ann, queued.id, watchFrom(-1)))
    expect(await there.cancel(ann, queued.id)).toMatchObject({ status: 'cancelled', output: [] })
    const types = typesOf(await watcher.whole)
    expect(types).toEqual(['response.created', 'response.queued', 'response.incomplete'])
    const generation = controlledGeneration()
    here.processQueue(planQueued(generation.generate))
    expect(await here.find(ann, queued.id)).toMatchObject({ status: 'cancelled' })
    expect(generation.signal()).toBeUndefined()
  })

  test('reaches a background response while a worker prepares it', async () => {
    const slow = await fixture.replica()
    const preparationStarted = Promise.withResolvers<void>()
    const continuePreparation = Promise.withResolvers<void>()
    const generation = controlledGeneration()
    const queued = queuedOf()
    slow.processQueue(async (accepted) => {
      if (accepted.id === queued.id) {
        preparationStarted.resolve()
        await continuePreparation.promise
      }
      return planQueued(generation.generate)(accepted)
    })
    here.drain()
    there.drain()
    await slow.enqueue(queued)
    await preparationStarted.promise
    expect(await there.cancel(ann, queued.id)).toMatchObject({ status: 'cancelled' })
    continuePreparation.resolve()
    const jobs = async () => fixture.database.drizzle.execute('select id from job')
    await eventually('its job is finished', async () => (await jobs()).length === 0)
    expect(generation.signal()).toBeUndefined()
    const types = typesOf(await readAll(await there.watch(ann, queued.id, watchFrom(-1))))
    expect(types).toEqual(['response.created', 'response.queued', 'response.incomplete'])
    slow.drain()
  })

  test('reaches a background response between its claim and its first frame', async () => {
    const claimed = Promise.withResolvers<string>()
    const continueStart = Promise.withResolvers<void>()
    const starting = await fixture.replica({
      wrapStore: (store) => ({
        ...store,
        async claimQueued(id, runnerId) {
          const isClaimed = await store.claimQueued(id, runnerId)
          claimed.resolve(id)
          await continueStart.promise
          return isClaimed
        },
      }),
    })
    const generation = controlledGeneration()
    const queued = queuedOf()
    starting.processQueue(planQueued(generation.generate))
    await starting.enqueue(queued)
    expect(await claimed.promise).toBe(queued.id)
    const notified = Promise.withResolvers<void>()
    await fixture.database.listen('responses', {
      onMessage: (payload) => payload.includes(queued.id) && notified.resolve(),
      onGap() {},
    })
    const cancelled = there.cancel(ann, queued.id)
    await notified.promise
    continueStart.resolve()
    expect(await cancelled).toMatchObject({ status: 'cancelled' })
    const types = typesOf(await readAll(await there.watch(ann, queued.id, watchFrom(-1))))
    expect(types.at(-1)).toBe('response.incomplete')
  })
})

describe('deleting', () => {
  for (const place of ['on its worker', 'on another worker']) {
    test(`ends a run and removes every trace of it: deleted ${place}`, async () => {
      const { run, reader, generation, rest } = await startPartialRun(here)
      const isStored = async () => (await there.find(ann, run.id)) !== undefined
      await eventually('it is stored', isStored)
      const remote = readOn(await there.watch(ann, run.id, watchFrom(-1)))
      await eventually('another worker reads it too', () => remote.count() > 2)
      expect(await (place === 'on its worker' ? here : there).remove(ann, run.id)).toBe(true)
      await run.ended()
      generation.give(...rest)
      expect(generation.signal()?.aborted).toBe(true)
      expect(typesOf(await reader.whole).at(-1)).toBe('response.incomplete')
      expect(typesOf(await remote.whole).at(-1)).toBe('response.failed')
      const later = here.start(planOf(immediately(eventsOf(textChunks))))
      await later.ended()
      for (const runs of [here, there]) {
        expect(await runs.find(ann, run.id)).toBeUndefined()
        expect(await runs.watch(ann, run.id, watchFrom(-1))).toBeUndefined()
        expect(await runs.remove(ann, run.id)).toBe(false)
      }
    })
  }

  test('removes a finished response', async () => {
    const run = here.start(planOf(immediately(eventsOf(textChunks))))
    await run.ended()
    expect(await there.remove(ann, run.id)).toBe(true)
    expect(await here.find(ann, run.id)).toBeUndefined()
  })
})

describe('a worker that receives no notifications', () => {
  test('still ends responses that are cancelled or deleted on another worker', async () => {
    const isolated = await fixture.replica({ isIsolated: true })
    const cancelled = await startPartialRun(isolated)
    const deleted = await startPartialRun(isolated)
    await eventually(
      'it is stored',
      async () => (await there.find(ann, deleted.run.id)) !== undefined,
    )
    const asked = there.cancel(ann, cancelled.run.id)
    expect(await there.remove(ann, deleted.run.id)).toBe(true)
    expect(await asked).toMatchObject({ status: 'cancelled' })
    for (const { reader, generation } of [cancelled, deleted]) {
      expect(typesOf(await reader.whole).at(-1)).toBe('response.incomplete')
      expect(generation.signal()?.aborted).toBe(true)
    }
    const types = typesOf(await readAll(await there.watch(ann, cancelled.run.id, watchFrom(-1))))
    expect(types.at(-1)).toBe('response.incomplete')
    expect(await there.find(ann, cancelled.run.id)).toMatchObject({ status: 'cancelled' })
    expect(await there.find(ann, deleted.run.id)).toBeUndefined()
  })
})
