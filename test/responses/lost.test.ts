import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { EventBatch } from '#inference/events.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  answerOf,
  atOnce,
  createFate,
  forever,
  framesOf,
  jobOf,
  led,
  preparing,
  queuedOf,
  type Replica,
  type RunsWorld,
  readAll,
  readOn,
  startRunsWorld,
  typesOf,
  watchFrom,
} from './runs-world.ts'
import { ann } from './store-world.ts'

/** A worker that dies is one whose database falls silent: nothing that it does is seen any more. */
let world: RunsWorld
beforeEach(async () => {
  world = await startRunsWorld()
})
afterEach(() => world.close())

const quick = { lostAfterMs: 300 }

/** One message that is whole and one that has begun. */
const half: EventBatch[] = [
  [{ type: 'generation-start' }, { type: 'text-start', block: 0, form: 'answer' }],
  [{ type: 'text-delta', block: 0, text: 'whole' }],
  [{ type: 'text-end', block: 0, complete: true }],
  [{ type: 'text-start', block: 1, form: 'answer' }],
  [{ type: 'text-delta', block: 1, text: 'begun' }],
]
const framesOfHalf = 11

async function startDying() {
  const fate = createFate()
  const dying = await world.replica({ settings: quick, isMortal: true, ...fate })
  const generation = led()
  const run = dying.start(jobOf(generation.generate))
  generation.give(...half)
  const reader = readOn(run.frames(forever))
  await eventually('all of it is shown', () => reader.count() === framesOfHalf)
  return { fate, dying, run, reader, generation }
}

async function untilStored(replica: Replica, id: string, last: number): Promise<void> {
  while ((await replica.store.progress([id]))[0]?.last !== last) await Bun.sleep(2)
}

test('a run whose worker was killed has failed, keeps what was whole, and can be read', async () => {
  const survivor = await world.replica({ settings: quick })
  const { fate, run, reader, dying } = await startDying()
  await untilStored(survivor, run.id, framesOfHalf - 1)
  const watcher = readOn(await survivor.watch(ann, run.id, watchFrom(-1)))
  await eventually('it is watched', () => watcher.count() === framesOfHalf)
  fate.state = 'silent'

  const whole = await watcher.whole
  expect(whole).toStartWith(reader.text())
  expect(typesOf(whole).slice(framesOfHalf)).toEqual(['error', 'response.failed'])
  const object = await survivor.find(ann, run.id)
  expect(object).toMatchObject({
    status: 'failed',
    error: { code: 'worker_lost', type: 'server_error', param: null },
    output: [{ type: 'message', status: 'completed', content: [{ text: 'whole' }] }],
  })
  expect(object?.output).toHaveLength(1)

  const [error, failed] = framesOf(whole).slice(-2)
  expect(error).toContain(`"sequence_number":${framesOfHalf}`)
  expect(failed).toContain(`"sequence_number":${framesOfHalf + 1}`)
  expect(await readAll(await survivor.watch(ann, run.id, watchFrom(3)))).toBe(
    framesOf(whole).slice(4).join(''),
  )
  // Somebody who read from the worker itself may have seen more than it could write.
  const ahead = await readAll(await survivor.watch(ann, run.id, watchFrom(40)))
  expect(typesOf(ahead)).toEqual(['error', 'response.failed'])
  expect(ahead).toContain('"sequence_number":41')
  expect(await survivor.cancel(ann, run.id)).toMatchObject({ status: 'failed' })
  expect(dying.running()).toBe(1)
})

test('the only process of a database ends at its start what was running before', async () => {
  const { fate, run, generation } = await startDying()
  const queued = queuedOf()
  const sole = { settings: { lostAfterMs: 60_000 }, soleProcess: true }
  const looking = await world.replica()
  await untilStored(looking, run.id, framesOfHalf - 1)
  await looking.enqueue(queued)
  fate.state = 'silent'
  const next = await world.replica(sole)
  expect(await next.find(ann, run.id)).toMatchObject({ status: 'failed' })
  generation.give([{ type: 'text-end', block: 1, complete: true }])
  expect(await next.find(ann, queued.id)).toMatchObject({ status: 'queued' })
  next.processQueue(preparing(atOnce(answerOf(['later']))))
  const whole = await readAll(await next.watch(ann, queued.id, watchFrom(-1)))
  expect(typesOf(whole).at(-1)).toBe('response.completed')
})

test('a worker that comes back too late hears that its run is over', async () => {
  const survivor = await world.replica({ settings: quick })
  const { fate, run, reader, generation, dying } = await startDying()
  await untilStored(survivor, run.id, framesOfHalf - 1)
  fate.state = 'away'
  const watcher = readOn(await survivor.watch(ann, run.id, watchFrom(-1)))
  await watcher.whole
  fate.state = 'there'
  expect(typesOf(await reader.whole).slice(-2)).toEqual(['error', 'response.failed'])
  expect(generation.signal()?.aborted).toBe(true)
  expect(await run.ended()).toMatchObject({ error: { kind: 'worker_lost' } })
  expect(await dying.find(ann, run.id)).toMatchObject({ error: { code: 'worker_lost' } })
  await dying.close()
})

test('nobody is taken for dead because the database was away for all', async () => {
  const fate = createFate()
  const both = { settings: quick, ...fate }
  const [here, there] = [await world.replica(both), await world.replica(both)]
  const runs = [here, there].map((replica) => {
    const generation = led()
    const run = replica.start(jobOf(generation.generate))
    generation.give(...half)
    return { run, generation, reader: readOn(run.frames(forever)) }
  })
  for (const { run } of runs) await untilStored(here, run.id, framesOfHalf - 1)
  fate.state = 'away'
  await Bun.sleep(2 * quick.lostAfterMs)
  fate.state = 'there'
  // As long as it takes to end what is lost, as the next one shows.
  const { run: lost } = await startLost()
  while ((await here.find(ann, lost.id))?.status === 'in_progress') await Bun.sleep(5)
  for (const { run, generation, reader } of runs) {
    expect(await here.find(ann, run.id)).toMatchObject({ status: 'in_progress' })
    generation.give(
      [{ type: 'text-end', block: 1, complete: true }],
      [{ type: 'finish', reason: 'stop', rawReason: 'stop', usage: null }],
    )
    expect(typesOf(await reader.whole).at(-1)).toBe('response.completed')
    expect(await there.find(ann, run.id)).toMatchObject({ status: 'completed' })
  }

  async function startLost() {
    const dying = await startDying()
    await untilStored(here, dying.run.id, framesOfHalf - 1)
    dying.fate.state = 'silent'
    return dying
  }
})
