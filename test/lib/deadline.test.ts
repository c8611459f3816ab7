import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { followSignal, sleep, Watchdog } from '#lib/deadline.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('a watchdog', () => {
  function createWatchdog(limitMs: number) {
    const expire = jest.fn()
    return { watchdog: new Watchdog(limitMs, expire), expire }
  }

  test('expires once when a period is as long as its limit', () => {
    const { watchdog, expire } = createWatchdog(1_000)
    watchdog.begin()
    jest.advanceTimersByTime(999)
    expect(expire).not.toHaveBeenCalled()
    jest.advanceTimersByTime(1)
    expect(expire).toHaveBeenCalledTimes(1)
    jest.advanceTimersByTime(10_000)
    expect(expire).toHaveBeenCalledTimes(1)
  })

  test('does not count the time outside periods', () => {
    const { watchdog, expire } = createWatchdog(1_000)
    watchdog.begin()
    jest.advanceTimersByTime(600)
    watchdog.end()
    jest.advanceTimersByTime(100_000)
    watchdog.begin()
    jest.advanceTimersByTime(999)
    expect(expire).not.toHaveBeenCalled()
    jest.advanceTimersByTime(1)
    expect(expire).toHaveBeenCalledTimes(1)
  })

  test('measures a period from its last beginning', () => {
    const { watchdog, expire } = createWatchdog(1_000)
    for (let turn = 0; turn < 10; turn++) {
      watchdog.begin()
      jest.advanceTimersByTime(900)
    }
    expect(expire).not.toHaveBeenCalled()
    jest.advanceTimersByTime(100)
    expect(expire).toHaveBeenCalledTimes(1)
  })

  test('never expires after its stop', () => {
    const { watchdog, expire } = createWatchdog(1_000)
    watchdog.begin()
    jest.advanceTimersByTime(999)
    watchdog.stop()
    jest.advanceTimersByTime(10_000)
    expect(expire).not.toHaveBeenCalled()
    expect(jest.getTimerCount()).toBe(0)
  })
})

describe('a followed signal', () => {
  test('aborts the controller with its reason', () => {
    const source = new AbortController()
    const { controller } = followSignal(source.signal)
    expect(controller.signal.aborted).toBe(false)
    source.abort('over')
    expect(controller.signal.reason).toBe('over')
  })

  test('that is aborted already aborts the controller at once', () => {
    expect(followSignal(AbortSignal.abort('before')).controller.signal.reason).toBe('before')
  })

  test('no longer acts once it is released', () => {
    const source = new AbortController()
    const { controller, release } = followSignal(source.signal)
    release()
    source.abort('over')
    expect(controller.signal.aborted).toBe(false)
  })
})

describe('sleep', () => {
  test('lasts for the given time', async () => {
    let isOver = false
    const sleeping = sleep(1_000, new AbortController().signal).then(() => {
      isOver = true
    })
    jest.advanceTimersByTime(999)
    await Promise.resolve()
    expect(isOver).toBe(false)
    jest.advanceTimersByTime(1)
    await sleeping
  })

  test('rejects with the reason of the signal and leaves no timer', async () => {
    const source = new AbortController()
    const sleeping = sleep(1_000, source.signal)
    source.abort(new Error('over'))
    await expect(sleeping).rejects.toThrow('over')
    expect(jest.getTimerCount()).toBe(0)
    await expect(sleep(1_000, source.signal)).rejects.toThrow('over')
    expect(jest.getTimerCount()).toBe(0)
  })

  test('leaves no listener on the signal', async () => {
    const { signal } = new AbortController()
    const remove = jest.spyOn(signal, 'removeEventListener')
    const sleeping = sleep(1, signal)
    jest.advanceTimersByTime(1)
    await sleeping
    expect(remove).toHaveBeenCalledTimes(1)
  })
})
