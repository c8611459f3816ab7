import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { ModelCall } from '#inference/upstreams/llama/model-call.ts'
import { AppError } from '#lib/errors.ts'

/** The gateway's side of a call in a model process, whose messages arrive by hand. */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const piece = (text: string) => ({ type: 'text', text }) as const
const tokens = { input: 1, cached: 0, output: 1, thinking: 0 }
const finished = { type: 'finished', reason: 'stop', tokens } as const
const signal = new AbortController().signal

function start() {
  const acknowledge = jest.fn()
  const stop = jest.fn()
  const onStuck = jest.fn()
  const call = new ModelCall({ acknowledge, stop, onStuck, releaseMs: 30_000 })
  return { call, acknowledge, stop, onStuck }
}

test('output is returned once, as much as there is, and acknowledged', async () => {
  const { call, acknowledge } = start()
  const begun = call.take(signal)
  call.begin()
  expect(await begun).toEqual({ hasBegun: true, pieces: [], ending: null })
  call.add(piece('one'))
  call.add(piece('two'))
  expect((await call.take(signal)).pieces).toEqual([piece('one'), piece('two')])
  const waiting = call.take(signal)
  call.add(piece('three'))
  expect((await waiting).pieces).toEqual([piece('three')])
  expect(acknowledge.mock.calls).toEqual([[2], [1]])
})

test('what preceded the end is returned with it, and no longer acknowledged', async () => {
  const { call, acknowledge } = start()
  call.add(piece('one'))
  call.end(finished)
  await call.released
  expect(await call.take(signal)).toEqual({
    hasBegun: false,
    pieces: [piece('one')],
    ending: finished,
  })
  expect(acknowledge).not.toHaveBeenCalled()
})

test('output that precedes a failure is returned first', async () => {
  const { call } = start()
  call.add(piece('one'))
  call.fail(new AppError('upstream_truncated', 'The process exited.'))
  expect((await call.take(signal)).pieces).toEqual([piece('one')])
  await expect(call.take(signal)).rejects.toThrow('The process exited.')
})

test('a caller that leaves waits no longer', async () => {
  const { call } = start()
  const caller = new AbortController()
  const waiting = call.take(caller.signal)
  caller.abort(new Error('left'))
  await expect(waiting).rejects.toThrow('left')
})

test('a call that does not stop in time is reported as stuck once', () => {
  const { call, stop, onStuck } = start()
  call.stop()
  call.stop()
  expect(stop).toHaveBeenCalledTimes(1)
  jest.advanceTimersByTime(29_999)
  expect(onStuck).not.toHaveBeenCalled()
  jest.advanceTimersByTime(60_000)
  expect(onStuck).toHaveBeenCalledTimes(1)
})

test('a call that has ended is not stopped, and one that stops in time is not stuck', () => {
  const [ended, stopped] = [start(), start()]
  ended.call.end(finished)
  ended.call.stop()
  stopped.call.stop()
  stopped.call.end({ type: 'stopped' })
  jest.advanceTimersByTime(60_000)
  expect(ended.stop).not.toHaveBeenCalled()
  expect([ended, stopped].map(({ onStuck }) => onStuck.mock.calls)).toEqual([[], []])
})
