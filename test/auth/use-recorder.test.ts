import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createUseRecorder } from '#auth/use-recorder.ts'
import { endPassedTime, passTime } from '#test/support/passing-time.ts'

const grainMs = 60_000
/** Uses that wait for one flush. */
const waitingMax = 10_000

let written: (readonly string[])[]
let warnings: string[]
let failing: boolean
let recorder: ReturnType<typeof createUseRecorder>

beforeEach(() => {
  written = []
  warnings = []
  failing = false
  recorder = createUseRecorder({
    async markUsed(ids) {
      if (failing) throw new Error('no database')
      written.push(ids)
    },
    now: () => new Date(),
    log: { warn: (message) => warnings.push(message) },
    what: 'key',
  })
})
afterEach(async () => {
  endPassedTime()
  await recorder.flush()
})

test('a use is written once a minute', async () => {
  for (const id of ['a', 'b', 'a']) recorder.record(id)
  await recorder.flush()
  for (const id of ['a', 'b']) recorder.record(id)
  await recorder.flush()
  expect(written).toEqual([['a', 'b']])
  passTime(grainMs)
  recorder.record('a')
  await recorder.flush()
  expect(written).toEqual([['a', 'b'], ['a']])
})

test('what is used more than once between two flushes is written once', async () => {
  recorder.record('a')
  passTime(grainMs)
  recorder.record('a')
  await recorder.flush()
  expect(written).toEqual([['a']])
})

test('only so many wait, and as many are remembered', async () => {
  const fill = (prefix: string) => {
    for (let index = 0; index <= waitingMax; index++) recorder.record(`${prefix}${index}`)
  }
  fill('first')
  await recorder.flush()
  expect(written.map(({ length }) => length)).toEqual([waitingMax])
  // The next one is remembered in an empty map: those before it are due again.
  recorder.record('other')
  recorder.record('first1')
  await recorder.flush()
  expect(written[1]).toEqual(['other', 'first1'])
  // A remembered one is not.
  recorder.record('first1')
  await recorder.flush()
  expect(written).toHaveLength(2)
})

test('a failure is logged, and the next use is written', async () => {
  failing = true
  recorder.record('a')
  await recorder.flush()
  expect(warnings).toEqual(['last use not written'])
  failing = false
  recorder.record('b')
  await recorder.flush()
  expect(written).toEqual([['b']])
})
