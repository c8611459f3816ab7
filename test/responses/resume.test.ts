import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isTerminal } from '#responses/response.ts'
import { doneFrame } from '#surfaces/responses/frames.ts'
import { eventually } from '#test/support/eventually.ts'
import { checkStream } from '#test/support/response-frames.ts'
import {
  controlledGeneration,
  eventsOf,
  forever,
  framesOf,
  immediately,
  planOf,
  type Replica,
  type RunsFixture,
  readAll,
  readOn,
  startPartialRun,
  startRunsFixture,
  typesOf,
  watchFrom,
} from './runs-fixture.ts'
import { ann, bob, endOf, nothing, objectOf, opened, segment } from './store-fixture.ts'

let fixture: RunsFixture
let here: Replica
let there: Replica

beforeAll(async () => {
  fixture = await startRunsFixture()
  here = await fixture.replica()
  there = await fixture.replica()
})
afterAll(() => fixture.close())

const textChunks = ['one ', 'two ', 'three\n\n', 'four', ' \u0000 ', 'five']

/** Other workers find a response in the database, where its first frames are written later. */
const stored = (id: string) =>
  eventually('it is stored', async () => (await there.store.find(ann, id)) !== undefined)

describe('an interrupted stream', () => {
  test('resumes after any frame of a finished response, on every worker', async () => {
    const run = here.start(planOf(immediately(eventsOf(textChunks))))
    const frames = framesOf(await readAll(run.frames(forever)))
    expect(frames.length).toBeGreaterThan(textChunks.length)
    for (const runs of [here, there]) {
      for (let seen = -1; seen < frames.length; seen++) {
        const rest = await readAll(await runs.watch(ann, run.id, watchFrom(seen)))
        expect(rest).toBe(frames.slice(seen + 1).join(''))
      }
    }
  })

  test('resumes after any frame of a running response, on every worker', async () => {
    const answer = eventsOf(textChunks)
    const generation = controlledGeneration()
    const run = here.start(planOf(generation.generate))
    const first = readOn(run.frames(forever))
    const resumed: ReturnType<typeof readOn>[] = []
    for (const batch of answer) {
      generation.give(batch)
      await eventually('the batch is sent', () => generation.taken() === answer.indexOf(batch) + 1)
      await stored(run.id)
      for (let seen = -1; seen < first.count(); seen++) {
        resumed.push(readOn(await here.watch(ann, run.id, watchFrom(seen))))
        if (answer.indexOf(batch) % 3 > 0) continue
        resumed.push(readOn(await there.watch(ann, run.id, watchFrom(seen))))
      }
    }
    const whole = await first.whole
    for (const { whole: rest } of resumed) expect(whole).toEndWith(await rest)
    expect(new Set(await Promise.all(resumed.map((each) => each.whole)))).toContain(whole)
  })

  test('starts after a sequence number that has not been reached yet', async () => {
    const generation = controlledGeneration()
    const run = here.start(planOf(generation.generate))
    generation.give(...eventsOf(textChunks).slice(0, 2))
    const first = readOn(run.frames(forever))
    await eventually('frames were sent', () => first.count() >= 5)
    const ahead = readOn(await here.watch(ann, run.id, watchFrom(7)))
    generation.give(...eventsOf(textChunks).slice(2))
    const frames = framesOf(await first.whole)
    expect(await ahead.whole).toBe(frames.slice(8).join(''))
    const far = await here.watch(ann, run.id, watchFrom(Number.MAX_SAFE_INTEGER))
    expect(await readAll(far)).toBe('')
  })

  test('does not exist for other owners, running or finished', async () => {
    const generation = controlledGeneration()
    const run = here.start(planOf(generation.generate))
    generation.give(...eventsOf(textChunks).slice(0, 2))
    const first = readOn(run.frames(forever))
    const see = async (owner: string) => [
      (await here.watch(owner, run.id, watchFrom(-1))) !== undefined,
      (await there.watch(owner, run.id, watchFrom(-1))) !== undefined,
      (await here.find(owner, run.id)) !== undefined,
      (await there.cancel(owner, 'resp_nobody')) !== undefined,
    ]
    await eventually('frames were sent', () => first.count() > 2)
    await stored(run.id)
    expect(await see(bob)).toEqual([false, false, false, false])
    expect(await see(ann)).toEqual([true, true, true, false])
    expect(await here.cancel(bob, run.id)).toBeUndefined()
    expect(await here.remove(bob, run.id)).toBe(false)
    generation.give(...eventsOf(textChunks).slice(2))
    await first.whole
    expect(await see(bob)).toEqual([false, false, false, false])
  })

  test('ends at a missing piece of the log instead of skipping it', async () => {
    const { id } = opened()
    const [first, second, later] = [segment(0, 2), segment(3, 5), segment(9, 12)]
    await here.store.write({
      ...nothing,
      opened: [opened({ id })],
      logged: [first, second].map((each) => ({ id, segment: each })),
      ended: [endOf(objectOf(id, 'completed'), { segment: later })],
    })
    for (const runs of [here, there]) {
      const reader = readOn(await runs.watch(ann, id, watchFrom(-1)))
      await expect(reader.whole).rejects.toMatchObject({ wireCode: 'stream_expired' })
      expect(reader.text()).toBe(first.frames + second.frames)
      const beyond = readOn(await runs.watch(ann, id, watchFrom(9)))
      expect(later.frames).toEndWith(await beyond.whole)
    }
  })

  test('beyond every number that a log can have is empty, and its end has a valid number', async () => {
    const ended = here.start(planOf(immediately(eventsOf(textChunks))))
    await ended.ended()
    await eventually('its end is stored', async () => {
      return isTerminal((await there.store.find(ann, ended.id))?.log.status ?? 'queued')
    })
    const generation = controlledGeneration()
    const running = here.start(planOf(generation.generate))
    generation.give(...eventsOf(textChunks).slice(0, 2))
    await stored(running.id)
    for (const far of [2 ** 31 - 1, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      for (const runs of [here, there]) {
        expect(await readAll(await runs.watch(ann, ended.id, watchFrom(far)))).toBe('')
      }
    }
    const watching = readOn(await there.watch(ann, running.id, watchFrom(Number.MAX_SAFE_INTEGER)))
    await here.remove(ann, running.id)
    const numbers = [...(await watching.whole).matchAll(/"sequence_number":(\d+)/g)]
    for (const [, number] of numbers) expect(Number(number)).toBeLessThanOrEqual(2 ** 31)
    expect(numbers.length).toBeGreaterThan(0)
  })

  test.each(['cancel', 'remove'] as const)(
    'ends by the notification of a %s elsewhere, without asking the database',
    async (what) => {
      const ended: string[] = []
      const deaf = await fixture.replica({
        wrapStore: (store) => ({
          ...store,
          progress: () => Promise.reject(new Error('refused')),
          write(work) {
            ended.push(...work.ended.map(({ id }) => id))
            return store.write(work)
          },
        }),
      })
      const { run, reader } = await startPartialRun(deaf)
      await stored(run.id)
      await there[what](ann, run.id)
      expect(typesOf(await reader.whole).at(-1)).toBe('response.incomplete')
      // Its worker stores the end of a cancelled response, and none of a deleted one.
      expect(ended).toEqual(what === 'cancel' ? [run.id] : [])
    },
  )

  test('reports that it has expired', async () => {
    const brief = await fixture.replica({ settings: { streamTtlS: 1 } })
    const run = brief.start(planOf(immediately(eventsOf(textChunks))))
    await run.ended()
    await brief.store.sweep(new Date(Date.now() + 5_000))
    const expired = await brief.watch(ann, run.id, watchFrom(-1)).catch((error: unknown) => error)
    expect(expired).toMatchObject({ kind: 'not_found', wireCode: 'stream_expired' })
    expect(isTerminal((await brief.find(ann, run.id))?.status ?? 'queued')).toBe(true)
  })

  test('of a response without one is made of its object, until it would have expired', async () => {
    const brief = await fixture.replica({ settings: { streamTtlS: 1 } })
    const { head, renderer } = planOf(immediately([]))
    renderer.push(eventsOf(textChunks).flat())
    expect(await brief.storeEnded(head, renderer.stored())).toBe(true)
    const whole = await readAll(await there.watch(ann, head.id, watchFrom(-1)))
    expect(checkStream(whole + doneFrame).response).toEqual(
      JSON.parse(JSON.stringify(renderer.stored())),
    )
    const tail = await readAll(await there.watch(ann, head.id, watchFrom(3)))
    expect([whole.endsWith(tail), tail.split('\n\n').length]).toEqual([
      true,
      whole.split('\n\n').length - 4,
    ])
    await brief.store.sweep(new Date(Date.now() + 5_000))
    const expired = await brief.watch(ann, head.id, watchFrom(-1)).catch((error: unknown) => error)
    expect(expired).toMatchObject({ wireCode: 'stream_expired' })
  })
})

describe('several readers', () => {
  test('receive the same frames at their own pace, also after eviction from memory', async () => {
    const small = await fixture.replica({ settings: { logBufferCharsMax: 1024 } })
    const long = Array.from({ length: 300 }, (_, at) => `word ${at} `)
    const generation = controlledGeneration()
    const run = small.start(planOf(generation.generate))
    const slow = run.frames(forever)
    generation.give(...eventsOf(long).slice(0, 2))
    const first = await slow.next()
    const quick = Array.from({ length: 20 }, () => readOn(run.frames(forever)))
    await stored(run.id)
    const abroad = readOn(await there.watch(ann, run.id, watchFrom(-1)))
    generation.give(...eventsOf(long).slice(2))
    const whole = await quick[0]?.whole
    expect(whole).toContain('word 299')
    for (const reader of quick) expect(await reader.whole).toBe(whole ?? '')
    expect(await abroad.whole).toBe(whole ?? '')
    expect((first.value ?? '') + (await readAll(slow))).toBe(whole ?? '')
  })

  test('are not affected when one disconnects', async () => {
    const generation = controlledGeneration()
    const run = here.start(planOf(generation.generate))
    generation.give(...eventsOf(textChunks).slice(0, 2))
    const leaving = new AbortController()
    const stays = readOn(run.frames(forever))
    const leaves = readOn(run.frames(leaving.signal))
    await eventually('both have received frames', () => leaves.count() > 2)
    leaving.abort()
    expect(await leaves.whole).not.toContain('two')
    generation.give(...eventsOf(textChunks).slice(2))
    expect(typesOf(await stays.whole).at(-1)).toBe('response.completed')
  })

  test('receive the same heartbeats, which a replay repeats', async () => {
    const beating = await fixture.replica({ heartbeatMs: 20 })
    const generation = controlledGeneration()
    const run = beating.start(planOf(generation.generate))
    const one = readOn(run.frames(forever))
    const other = readOn(await beating.watch(ann, run.id, watchFrom(-1)))
    const beats = () => typesOf(one.text()).filter((type) => type === 'response.in_progress').length
    await eventually('the stream opens and sends heartbeats', () => beats() > 2)
    generation.give(...eventsOf(textChunks))
    const whole = await one.whole
    expect(await other.whole).toBe(whole)
    expect(await readAll(await there.watch(ann, run.id, watchFrom(-1)))).toBe(whole)
  })
})
