import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { Deadlines } from '#lib/deadlines.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const limitMs = 1_000

/** Items that note their names when they expire. */
function start() {
  const expired: string[] = []
  const deadlines = new Deadlines(limitMs)
  const add = (name: string) => {
    const item = { expire: () => void expired.push(name) }
    deadlines.add(item)
    return item
  }
  return { add, deadlines, expired }
}

test('each expires at its own time, once, with one timer for all', () => {
  const { add, expired } = start()
  add('a')
  jest.advanceTimersByTime(400)
  add('b')
  add('c')
  expect(jest.getTimerCount()).toBe(1)
  jest.advanceTimersByTime(599)
  expect(expired).toEqual([])
  jest.advanceTimersByTime(1)
  expect(expired).toEqual(['a'])
  jest.advanceTimersByTime(399)
  expect(expired).toEqual(['a'])
  jest.advanceTimersByTime(1)
  expect(expired).toEqual(['a', 'b', 'c'])
  jest.advanceTimersByTime(10 * limitMs)
  expect(expired).toEqual(['a', 'b', 'c'])
  expect(jest.getTimerCount()).toBe(0)
})

test('a removed one does not expire, and the next one does in time', () => {
  const { add, deadlines, expired } = start()
  const removed = add('removed')
  jest.advanceTimersByTime(500)
  deadlines.remove(removed)
  add('next')
  jest.advanceTimersByTime(999)
  expect(expired).toEqual([])
  jest.advanceTimersByTime(1)
  expect(expired).toEqual(['next'])
})

test('one that is added when another expires has the whole time', () => {
  const { add, deadlines, expired } = start()
  deadlines.add({ expire: () => void add('second') })
  jest.advanceTimersByTime(limitMs)
  expect(expired).toEqual([])
  expect(jest.getTimerCount()).toBe(1)
  jest.advanceTimersByTime(limitMs - 1)
  expect(expired).toEqual([])
  jest.advanceTimersByTime(1)
  expect(expired).toEqual(['second'])
})

test('after a pause without any, deadlines hold again', () => {
  const { add, expired } = start()
  add('first')
  jest.advanceTimersByTime(5 * limitMs)
  add('later')
  jest.advanceTimersByTime(limitMs)
  expect(expired).toEqual(['first', 'later'])
})
