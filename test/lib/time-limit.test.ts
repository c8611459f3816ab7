import { afterEach, beforeEach, expect, jest, spyOn, test } from 'bun:test'
import { orAfter, withTimeLimit } from '#lib/time-limit.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const endless = new Promise<never>(() => {})

test('work within the limit gives its result and leaves no timer', async () => {
  expect(await orAfter(Promise.resolve('done'), 1_000, 'late')).toBe('done')
  expect(await withTimeLimit(Promise.resolve('done'), 1_000, () => new Error('late'))).toBe('done')
  expect(jest.getTimerCount()).toBe(0)
})

test('failing work fails with its own error and leaves no timer', async () => {
  const failing = () => Promise.reject(new Error('broken'))
  await expect(orAfter(failing(), 1_000, 'late')).rejects.toThrow('broken')
  await expect(withTimeLimit(failing(), 1_000, () => new Error('late'))).rejects.toThrow('broken')
  expect(jest.getTimerCount()).toBe(0)
})

test('work that takes as long as the limit is late', async () => {
  const outcomes: unknown[] = []
  const late = orAfter(endless, 1_000, 'late').then((outcome) => outcomes.push(outcome))
  jest.advanceTimersByTime(999)
  await Promise.resolve()
  expect(outcomes).toEqual([])
  jest.advanceTimersByTime(1)
  await late
  expect(outcomes).toEqual(['late'])
  const failure = withTimeLimit(endless, 1_000, () => new Error('too late'))
  jest.advanceTimersByTime(1_000)
  await expect(failure).rejects.toThrow('too late')
})

test('work whose result is undefined is not late', async () => {
  const late = jest.fn(() => new Error('late'))
  expect(await withTimeLimit(Promise.resolve(undefined), 1_000, late)).toBeUndefined()
  expect(late).not.toHaveBeenCalled()
})

test('work of a process that was suspended has the limit again, once', async () => {
  const outcomes: unknown[] = []
  const late = orAfter(endless, 1_000, 'late').then((outcome) => outcomes.push(outcome))
  const { now } = performance
  const clock = spyOn(performance, 'now').mockImplementation(() => now.call(performance) + 10_000)
  jest.advanceTimersByTime(1_999)
  await Promise.resolve()
  expect(outcomes).toEqual([])
  jest.advanceTimersByTime(1)
  await late
  expect(outcomes).toEqual(['late'])
  clock.mockRestore()
})
