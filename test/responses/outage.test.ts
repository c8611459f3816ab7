import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { ResponseStore } from '#responses/store.ts'
import { createLog } from '#telemetry/log.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  answerOf,
  atOnce,
  createFate,
  forever,
  framesOf,
  jobOf,
  led,
  type Replica,
  type RunsWorld,
  readAll,
  readOn,
  startRunsWorld,
  typesOf,
  watchFrom,
} from './runs-world.ts'
import { ann } from './store-world.ts'

let world: RunsWorld
let steady: Replica
beforeAll(async () => {
  world = await startRunsWorld()
  steady = await world.replica()
})
afterAll(() => world.close())

const words = ['one ', 'two ', 'three']

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
  const fate = createFate()
  const runs = await world.replica(fate)
  const generation = led()
  const run = runs.start(jobOf(generation.generate))
  generation.give(...answerOf(words).slice(0, 2))
  const reader = readOn(run.frames(forever))
  await eventually('it has started', () => reader.count() > 3)
  fate.state = 'away'
  generation.give(...answerOf(words).slice(2))
  await eventually('all but the terminal frames are sent', () =>
    reader.text().includes('output_item.done'),
  )
  const { refused } = fate
  await eventually('it was retried', () => fate.refused > refused + 1)
  expect(typesOf(reader.text()).at(-1)).toBe('response.output_item.done')
  fate.state = 'there'
  const whole = await reader.whole
  expect(typesOf(whole).at(-1)).toBe('response.completed')
  expect(await readAll(await steady.watch(ann, run.id, watchFrom(-1)))).toBe(whole)
  expect((await steady.find(ann, run.id))?.status).toBe('completed')
})

test('a response that cannot be stored in time says so in its last frames', async () => {
  const fate = createFate()
  const { lines, log } = collectLog()
  const runs = await world.replica({ settings: { storeWaitMs: 30 }, log, ...fate })
  const generation = led()
  const run = runs.start(jobOf(generation.generate))
  generation.give(...answerOf(words).slice(0, 2))
  const reader = readOn(run.frames(forever))
  await eventually('it is stored', async () => (await steady.find(ann, run.id)) !== undefined)
  fate.state = 'away'
  generation.give(...answerOf(words).slice(2))
  const whole = await reader.whole
  expect(typesOf(whole).at(-1)).toBe('response.completed')
  expect(framesOf(whole).at(-1)).toContain('"store":false')
  const numbers = framesOf(whole).map((frame) => /"sequence_number":(\d+)/.exec(frame)?.[1])
  expect(numbers).toEqual(numbers.map((_, at) => String(at)))
  expect(await run.ended()).toMatchObject({ error: null, object: { store: false } })
  expect(lines.filter((line) => line.includes('response not stored'))).toHaveLength(1)
  fate.state = 'there'
  const status = async () => (await steady.find(ann, run.id))?.status
  await eventually(
    'the partially stored response is ended',
    async () => (await status()) === 'failed',
  )
  const rest = await readAll(await steady.watch(ann, run.id, watchFrom(-1)))
  expect(typesOf(rest).slice(-2)).toEqual(['error', 'response.failed'])

  const next = runs.start(jobOf(atOnce(answerOf(words))))
  await next.ended()
  expect((await steady.find(ann, next.id))?.status).toBe('completed')
})

test('a response that the database rejects does not block others', async () => {
  let refused = ''
  const refusing = (store: ResponseStore): ResponseStore => ({
    ...store,
    async write(work) {
      const ids = [...work.opened, ...work.logged, ...work.ended].map(({ id }) => id)
      if (ids.includes(refused)) throw new Error('a value is out of range')
      await store.write(work)
    },
  })
  const runs = await world.replica({ settings: { storeWaitMs: 300 }, storeBehind: refusing })
  const bad = jobOf(atOnce(answerOf(words)))
  refused = bad.head.id
  const good = [bad, ...Array.from({ length: 5 }, () => jobOf(atOnce(answerOf(words))))]
  const ends = await Promise.all(good.map((job) => runs.start(job).ended()))
  expect(ends.map(({ object }) => object['store'])).toEqual([false, true, true, true, true, true])
  for (const { object } of ends.slice(1)) {
    expect((await steady.find(ann, object.id))?.status).toBe('completed')
  }
})

test('a database outage applies backpressure to the upstream', async () => {
  const fate = createFate()
  const charsMax = 4096
  const runs = await world.replica({ settings: { logBufferCharsMax: charsMax }, ...fate })
  const long = Array.from({ length: 200 }, (_, at) => `word ${at} `)
  const generation = led()
  const run = runs.start(jobOf(generation.generate))
  const reader = readOn(run.frames(forever))
  fate.state = 'away'
  generation.give(...answerOf(long))
  await eventually('the buffer is full', () => reader.text().length > charsMax)
  await eventually('it was retried', () => fate.refused > 2)
  const { length } = reader.text()
  expect(length).toBeLessThan(2 * charsMax)
  expect(generation.taken()).toBeLessThan(long.length)
  fate.state = 'there'
  const whole = await reader.whole
  expect(whole).toContain('word 199')
  expect(await readAll(await steady.watch(ann, run.id, watchFrom(-1)))).toBe(whole)
})

test('slow readers receive every frame of an unstored response', async () => {
  const fate = createFate()
  const settings = { logBufferCharsMax: 4096, storeWaitMs: 20 }
  const runs = await world.replica({ settings, ...fate })
  const long = Array.from({ length: 200 }, (_, at) => `word ${at} `)
  const generation = led()
  fate.state = 'away'
  const run = runs.start(jobOf(generation.generate))
  const [quick, slow] = [readOn(run.frames(forever)), run.frames(forever)]
  generation.give(...answerOf(long))
  const first = await slow.next()
  const left = run.frames(AbortSignal.timeout(50))
  await left.next()
  const rest = await readAll(slow)
  expect((first.value ?? '') + rest).toBe(await quick.whole)
  expect(framesOf(rest).at(-1)).toContain('"store":false')
  fate.state = 'there'
})
