import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { EventBatch } from '#inference/events.ts'
import type { ResponseObject } from '#responses/response.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  controlledGeneration,
  createDatabaseFault,
  eventsOf,
  forever,
  framesOf,
  immediately,
  planOf,
  planQueued,
  queuedOf,
  type Replica,
  type RunsFixture,
  readAll,
  readOn,
  startRunsFixture,
  typesOf,
  watchFrom,
} from './runs-fixture.ts'
import { ann } from './store-fixture.ts'

/** A worker is killed by never answering its queries: nothing that it does becomes visible. */
let fixture: RunsFixture
beforeEach(async () => {
  fixture = await startRunsFixture()
})
afterEach(() => fixture.close())

const quick = { lostAfterMs: 2_000 }

/** One complete and one incomplete message. */
const half: EventBatch[] = [
  [{ type: 'generation-start' }, { type: 'text-start', block: 0, form: 'answer' }],
  [{ type: 'text-delta', block: 0, text: 'whole' }],
  [{ type: 'text-end', block: 0, complete: true }],
  [{ type: 'text-start', block: 1, form: 'answer' }],
  [{ type: 'text-delta', block: 1, text: 'begun' }],
]
const framesOfHalf = 11

async function startDying() {
  const fault = createDatabaseFault()
  const dying = await fixture.replica({ settings: quick, isNeverClosed: true, ...fault })
  const generation = controlledGeneration()
  const run = dying.start(planOf(generation.generate))
  generation.give(...half)
  const reader = readOn(run.frames(forever))
  await eventually('all frames are sent', () => reader.count() === framesOfHalf)
  return { fault, dying, run, reader, generation }
}

async function untilStored(replica: Replica, id: string, last: number): Promise<void> {
  while ((await replica.store.progress([id]))[0]?.last !== last) await Bun.sleep(2)
}

test('a response whose worker was killed fails, keeps its output and can be read', async () => {
  const survivor = await fixture.replica({ settings: quick })
  const { fault, run, reader, dying } = await startDying()
  await untilStored(survivor, run.id, framesOfHalf - 1)
  const watcher = readOn(await survivor.watch(ann, run.id, watchFrom(-1)))
  await eventually('it is read', () => watcher.count() === framesOfHalf)
  fault.state = 'silent'

  const whole = await watcher.whole
  expect(whole).toStartWith(reader.text())
  expect(typesOf(whole).slice(framesOfHalf)).toEqual([
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'error',
    'response.failed',
  ])
  const object = await survivor.find(ann, run.id)
  expect(object).toMatchObject({
    status: 'failed',
    error: { code: 'worker_lost', type: 'server_error', param: null },
    output: [
      { type: 'message', status: 'completed', content: [{ text: 'whole' }] },
      { type: 'message', status: 'incomplete', content: [{ text: 'begun' }] },
    ],
  })

  const numbers = framesOf(whole).map((frame) => /"sequence_number":(\d+)/.exec(frame)?.[1])
  expect(numbers).toEqual(numbers.map((_, at) => String(at)))
  expect(framesOf(whole).at(-1)).toContain('"text":"begun"')
  expect(await readAll(await survivor.watch(ann, run.id, watchFrom(3)))).toBe(
    framesOf(whole).slice(4).join(''),
  )
  // A client of the killed worker may have received frames that were never stored.
  const ahead = await readAll(await survivor.watch(ann, run.id, watchFrom(40)))
  expect(typesOf(ahead)).toEqual(['error', 'response.failed'])
  expect(ahead).toContain('"sequence_number":41')
  expect(await survivor.cancel(ann, run.id)).toMatchObject({ status: 'failed' })
  expect(dying.running()).toBe(1)
})

test('the only process of a database fails responses in progress when it starts', async () => {
  const { fault, run, generation } = await startDying()
  const queued = queuedOf()
  const sole = { settings: { lostAfterMs: 60_000 }, soleProcess: true }
  const observer = await fixture.replica()
  await untilStored(observer, run.id, framesOfHalf - 1)
  await observer.enqueue(queued)
  fault.state = 'silent'
  const next = await fixture.replica(sole)
  expect(await next.find(ann, run.id)).toMatchObject({ status: 'failed' })
  generation.give([{ type: 'text-end', block: 1, complete: true }])
  expect(await next.find(ann, queued.id)).toMatchObject({ status: 'queued' })
  next.processQueue(planQueued(immediately(eventsOf(['later']))))
  const whole = await readAll(await next.watch(ann, queued.id, watchFrom(-1)))
  expect(typesOf(whole).at(-1)).toBe('response.completed')
})

test('a worker that was unreachable for too long ends the runs that others have failed', async () => {
  const survivor = await fixture.replica({ settings: quick })
  const { fault, run, reader, generation, dying } = await startDying()
  await untilStored(survivor, run.id, framesOfHalf - 1)
  fault.state = 'failing'
  const watcher = readOn(await survivor.watch(ann, run.id, watchFrom(-1)))
  await watcher.whole
  fault.state = 'none'
  expect(typesOf(await reader.whole).slice(-2)).toEqual(['error', 'response.failed'])
  expect(generation.signal()?.aborted).toBe(true)
  expect(await run.ended()).toMatchObject({ error: { code: 'worker_lost' } })
  expect(await dying.find(ann, run.id)).toMatchObject({ error: { code: 'worker_lost' } })
  await dying.close()
})

test('a response that completes here after others have failed it says that it is not stored', async () => {
  const [other, generation] = [await fixture.replica(), controlledGeneration()]
  // It never learns by itself that the response was ended.
  const unaware = await fixture.replica({
    wrapStore: (store) => ({
      ...store,
      progress: async (ids) => ids.map((id) => ({ id, status: 'in_progress' as const, last: 0 })),
    }),
    isIsolated: true,
  })
  const run = unaware.start(planOf(generation.generate))
  const reader = readOn(run.frames(forever))
  generation.give(...half)
  await untilStored(other, run.id, framesOfHalf - 1)
  const found = await other.store.find(ann, run.id)
  const object: ResponseObject = { id: run.id, status: 'failed', output: [] }
  const orphan = { id: run.id, last: framesOfHalf - 1 }
  expect(await other.store.endInProgress(orphan, { object, segment: null })).toBe(true)

  generation.give(
    [{ type: 'text-end', block: 1, complete: true }],
    [{ type: 'finish', reason: 'stop', rawReason: 'stop', usage: null }],
  )
  const last = framesOf(await reader.whole).at(-1)
  expect(last).toStartWith('event: response.completed\n')
  expect(last).toContain('"store":false')
  expect(await other.store.find(ann, run.id)).toMatchObject({
    log: { ...found?.log, status: 'failed' },
  })
})

test('a database outage does not orphan the responses of any worker', async () => {
  const fault = createDatabaseFault()
  const both = { settings: quick, ...fault }
  const [here, there] = [await fixture.replica(both), await fixture.replica(both)]
  const runs = [here, there].map((replica) => {
    const generation = controlledGeneration()
    const run = replica.start(planOf(generation.generate))
    generation.give(...half)
    return { run, generation, reader: readOn(run.frames(forever)) }
  })
  for (const { run } of runs) await untilStored(here, run.id, framesOfHalf - 1)
  fault.state = 'failing'
  await Bun.sleep(2 * quick.lostAfterMs)
  fault.state = 'none'
  // Waits until a real orphan is ended.
  const { run: orphan } = await startOrphan()
  while ((await here.find(ann, orphan.id))?.status === 'in_progress') await Bun.sleep(5)
  for (const { run, generation, reader } of runs) {
    expect(await here.find(ann, run.id)).toMatchObject({ status: 'in_progress' })
    generation.give(
      [{ type: 'text-end', block: 1, complete: true }],
      [{ type: 'finish', reason: 'stop', rawReason: 'stop', usage: null }],
    )
    expect(typesOf(await reader.whole).at(-1)).toBe('response.completed')
    expect(await there.find(ann, run.id)).toMatchObject({ status: 'completed' })
  }

  async function startOrphan() {
    const dying = await startDying()
    await untilStored(here, dying.run.id, framesOfHalf - 1)
    dying.fault.state = 'silent'
    return dying
  }
})
