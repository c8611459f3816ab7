import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  controlledGeneration,
  eventsOf,
  forever,
  immediately,
  planOf,
  type Replica,
  type RunsFixture,
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

describe('a foreground run', () => {
  test('is cancelled after a time without readers, and not before', async () => {
    const brief = await fixture.replica({ settings: { abandonMs: 30 } })
    const startRead = async () => {
      const generation = controlledGeneration()
      const run = brief.start(planOf(generation.generate))
      generation.give(...eventsOf(textChunks).slice(0, 2))
      const leaving = new AbortController()
      const reader = readOn(run.frames(leaving.signal))
      await eventually('it is read', () => reader.count() > 3)
      return { run, generation, leave: () => leaving.abort() }
    }
    const { run, generation, leave } = await startRead()
    const other = new AbortController()
    readOn(run.frames(other.signal))
    leave()
    // Waits until another run is abandoned.
    const abandoned = await startRead()
    abandoned.leave()
    expect((await abandoned.run.ended()).status).toBe('cancelled')
    expect(abandoned.generation.signal()?.aborted).toBe(true)
    expect(await there.find(ann, abandoned.run.id)).toMatchObject({ status: 'cancelled' })
    expect(generation.signal()?.aborted).toBe(false)

    const back = readOn(await brief.watch(ann, run.id, watchFrom(2)))
    other.abort()
    const another = await startRead()
    another.leave()
    await another.run.ended()
    expect(generation.signal()?.aborted).toBe(false)
    generation.give(...eventsOf(textChunks).slice(2))
    expect(typesOf(await back.whole).at(-1)).toBe('response.completed')
  })

  test('that fails before its first output rejects and is not stored', async () => {
    const generation = controlledGeneration()
    const run = here.start(planOf(generation.generate))
    const frames = readOn(run.frames(forever))
    const error = new AppError('upstream_overloaded', 'The upstream is busy.')
    generation.break(error)
    expect(await frames.whole.catch((failure: unknown) => failure)).toBe(error)
    expect(await run.ended().catch((failure: unknown) => failure)).toBe(error)
    expect(await here.find(ann, run.id)).toBeUndefined()
    expect(here.running()).toBe(0)
  })

  test('that fails later reports the error in its stream and object', async () => {
    const { run, reader, generation } = await startPartialRun(here)
    const error = new AppError('upstream_gap_timeout', 'The upstream was silent.')
    generation.give([
      { type: 'text-end', block: 0, complete: false },
      { type: 'error', error },
    ])
    expect(typesOf(await reader.whole).slice(-2)).toEqual(['error', 'response.failed'])
    expect(await run.ended()).toMatchObject({ status: 'failed' })
    const stored = await there.find(ann, run.id)
    expect(stored).toMatchObject({ status: 'failed', error: { code: 'upstream_gap_timeout' } })
  })

  test('fails if its generation ends without a terminal event', async () => {
    const run = here.start(planOf(immediately(eventsOf(textChunks).slice(0, -1))))
    expect(await run.ended()).toMatchObject({
      status: 'failed',
      error: { message: 'The upstream response ended prematurely.' },
    })
  })

  test('fails when its worker stops, and is stored as failed', async () => {
    const stopping = await fixture.replica()
    const { run, reader, generation } = await startPartialRun(stopping)
    await stopping.close()
    expect(typesOf(await reader.whole).slice(-2)).toEqual(['error', 'response.failed'])
    expect(generation.signal()?.aborted).toBe(true)
    const stored = await there.find(ann, run.id)
    expect(stored).toMatchObject({ status: 'failed', error: { code: 'draining' } })
    expect(stopping.running()).toBe(0)
  })
})
