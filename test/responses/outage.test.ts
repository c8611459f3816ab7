import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { ResponseStore } from '#responses/store.ts'
import { createLog } from '#telemetry/log.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  controlledGeneration,
  createDatabaseFault,
  eventsOf,
  forever,
  framesOf,
  immediately,
  planOf,
  type Replica,
  type RunsFixture,
  readAll,
  readOn,
  startRunsFixture,
  typesOf,
  watchFrom,
} from './runs-fixture.ts'
import { ann, bob } from './store-fixture.ts'

let fixture: RunsFixture
let steady: Replica
beforeAll(async () => {
  fixture = await startRunsFixture()
  steady = await fixture.replica()
})
afterAll(() => fixture.close())

const textChunks = ['one ', 'two ', 'three']

function collectLog() {
  const lines: string[] = []
  const log = createLog({
    level: 'error',
    format: 'json',
    write: (line) => lines.push(line),
    now: () => new Date(),
  })
  return { lines, log }
}

test('a stream continues during a database outage and ends after it', async () => {
  const fault = createDatabaseFault()
  const runs = await fixture.replica({ ...fault })
  const generation = controlledGeneration()
  const run = runs.start(planOf(generation.generate))
  generation.give(...eventsOf(textChunks).slice(0, 2))
  const reader = readOn(run.frames(forever))
  await eventually('it has started', () => reader.count() > 3)
  fault.state = 'failing'
  generation.give(...eventsOf(textChunks).slice(2))
  await eventually('all but the terminal frames are sent', () =>
    reader.text().includes('output_item.done'),
  )
  const { refused } = fault
  await eventually('it was retried', () => fault.refused > refused + 1)
  expect(typesOf(reader.text()).at(-1)).toBe('response.output_item.done')
  fault.state = 'none'
  const whole = await reader.whole
  expect(typesOf(whole).at(-1)).toBe('response.completed')
  expect(await readAll(await steady.watch(ann, run.id, watchFrom(-1)))).toBe(whole)
  expect((await steady.find(ann, run.id))?.status).toBe('completed')
})

test('a response that cannot be stored in time says so in its last frames', async () => {
  const fault = createDatabaseFault()
  const { lines, log } = collectLog()
  const runs = await fixture.replica({ settings: { storeWaitMs: 30 }, log, ...fault })
  const generation = controlledGeneration()
  const run = runs.start(planOf(generation.generate))
  generation.give(...eventsOf(textChunks).slice(0, 2))
  const reader = readOn(run.frames(forever))
  await eventually('it is stored', async () => (await steady.find(ann, run.id)) !== undefined)
  fault.state = 'failing'
  generation.give(...eventsOf(textChunks).slice(2))
  const whole = await reader.whole
  expect(typesOf(whole).at(-1)).toBe('response.completed')
  expect(framesOf(whole).at(-1)).toContain('"warning":{"code":"response_not_stored"')
  expect(framesOf(whole).at(-1)).toContain('"store":false')
  const numbers = framesOf(whole).map((frame) => /"sequence_number":(\d+)/.exec(frame)?.[1])
  expect(numbers).toEqual(numbers.map((_, at) => String(at)))
  expect(await run.ended()).toMatchObject({ error: null, store: false })
  expect(lines.filter((line) => line.includes('response not stored'))).toHaveLength(1)
  fault.state = 'none'
  const status = async () => (await steady.find(ann, run.id))?.status
  await eventually(
    'the partially stored response is ended',
    async () => (await status()) === 'failed',
  )
  expect((await steady.find(ann, run.id))?.['error']).toMatchObject({ code: 'response_not_stored' })
  const rest = await readAll(await steady.watch(ann, run.id, watchFrom(-1)))
  expect(typesOf(rest).slice(-2)).toEqual(['error', 'response.failed'])

  const next = runs.start(planOf(immediately(eventsOf(textChunks))))
  await next.ended()
  expect((await steady.find(ann, next.id))?.status).toBe('completed')
})

test('a response that was not stored at all is refused with a code, on every worker', async () => {
  const fault = createDatabaseFault()
  const runs = await fixture.replica({ settings: { storeWaitMs: 30 }, ...fault })
  const refusal = async (replica: Replica, ownerId: string = ann) => {
    const found = replica.find(ownerId, run.id).then(() => 'found or unknown')
    return found.catch((error: { wireCode?: string }) => error.wireCode)
  }
  fault.state = 'failing'
  const run = runs.start(planOf(immediately(eventsOf(textChunks))))
  expect(await run.ended()).toMatchObject({ status: 'completed', store: false })
  expect(await refusal(runs)).toBe('response_not_stored')
  fault.state = 'none'
  expect(await refusal(runs)).toBe('response_not_stored')
  expect(await refusal(runs, bob)).toBe('found or unknown')
  await eventually(
    'the other worker knows it',
    async () => (await refusal(steady)) === 'response_not_stored',
  )
  const watched = runs.watch(ann, run.id, watchFrom(-1)).catch((error: unknown) => error)
  expect(await watched).toMatchObject({ status: 404, wireCode: 'response_not_stored' })
})

test('no frame leaves before the row of its response is stored', async () => {
  const held = Promise.withResolvers<void>()
  const opened: string[] = []
  const runs = await fixture.replica({
    settings: { flushMs: 60_000 },
    wrapStore: (store) => ({
      ...store,
      async write(work) {
        opened.push(...work.opened.map(({ id }) => id))
        await held.promise
        return store.write(work)
      },
    }),
  })
  const generation = controlledGeneration()
  const run = runs.start(planOf(generation.generate))
  const reader = readOn(run.frames(forever))
  generation.give(...eventsOf(textChunks).slice(0, 3))
  await eventually('the row is being written', () => opened.includes(run.id))
  await eventually('further frames are ready', () => generation.taken() === 3)
  expect(reader.text()).toBe('')
  held.resolve()
  await eventually('the first frames are sent', () => reader.count() > 3)
  expect(await steady.find(ann, run.id)).toMatchObject({ status: 'in_progress' })
  generation.give(...eventsOf(textChunks).slice(3))
  expect(typesOf(await reader.whole).at(-1)).toBe('response.completed')
  const unwatched = controlledGeneration()
  const other = runs.start(planOf(unwatched.generate))
  unwatched.give(...eventsOf(textChunks).slice(0, 3))
  await eventually('it runs', () => unwatched.taken() === 3)
  unwatched.give(...eventsOf(textChunks).slice(3))
  await other.ended()
  expect(opened.filter((id) => id === other.id)).toHaveLength(1)
})

test('a response that the database rejects does not block others', async () => {
  let refused = ''
  const refusing = (store: ResponseStore): ResponseStore => ({
    ...store,
    async write(work) {
      const ids = [...work.opened, ...work.logged, ...work.ended].map(({ id }) => id)
      if (ids.includes(refused)) throw new Error('a value is out of range')
      return store.write(work)
    },
  })
  const runs = await fixture.replica({ settings: { storeWaitMs: 300 }, wrapStore: refusing })
  const bad = planOf(immediately(eventsOf(textChunks)))
  refused = bad.head.id
  const good = [bad, ...Array.from({ length: 5 }, () => planOf(immediately(eventsOf(textChunks))))]
  const ends = await Promise.all(good.map((job) => runs.start(job).ended()))
  expect(ends.map(({ store }) => store)).toEqual([false, true, true, true, true, true])
  for (const { id } of ends.slice(1)) {
    expect((await steady.find(ann, id))?.status).toBe('completed')
  }
})

test('a database outage applies backpressure to the upstream', async () => {
  const fault = createDatabaseFault()
  const charsMax = 4096
  const runs = await fixture.replica({ settings: { logBufferCharsMax: charsMax }, ...fault })
  const long = Array.from({ length: 200 }, (_, at) => `word ${at} `)
  const generation = controlledGeneration()
  const run = runs.start(planOf(generation.generate))
  const reader = readOn(run.frames(forever))
  const [begin = [], ...rest] = eventsOf(long)
  generation.give(begin)
  await eventually('it has started', () => reader.count() > 1)
  fault.state = 'failing'
  generation.give(...rest)
  await eventually('the buffer is full', () => reader.text().length > charsMax)
  await eventually('it was retried', () => fault.refused > 2)
  const { length } = reader.text()
  expect(length).toBeLessThan(2 * charsMax)
  expect(generation.taken()).toBeLessThan(long.length)
  fault.state = 'none'
  const whole = await reader.whole
  expect(whole).toContain('word 199')
  expect(await readAll(await steady.watch(ann, run.id, watchFrom(-1)))).toBe(whole)
})

test('slow readers receive every frame of an unstored response', async () => {
  const fault = createDatabaseFault()
  const settings = { logBufferCharsMax: 4096, storeWaitMs: 20 }
  const runs = await fixture.replica({ settings, ...fault })
  const long = Array.from({ length: 200 }, (_, at) => `word ${at} `)
  const generation = controlledGeneration()
  fault.state = 'failing'
  const run = runs.start(planOf(generation.generate))
  const leaving = new AbortController()
  const [quick, slow] = [readOn(run.frames(forever)), run.frames(forever)]
  const left = run.frames(leaving.signal)
  generation.give(...eventsOf(long))
  const first = await slow.next()
  await left.next()
  leaving.abort()
  const rest = await readAll(slow)
  expect((first.value ?? '') + rest).toBe(await quick.whole)
  expect(framesOf(rest).at(-1)).toContain('"store":false')
  fault.state = 'none'
})
