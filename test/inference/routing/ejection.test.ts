import { describe, expect, test } from 'bun:test'
import { Health } from '#inference/routing/health.ts'
import { defaultHealthSettings } from '#inference/routing/settings.ts'

const { ejectionMs, ejectionMaxMs, failuresMax, recoveryMs } = defaultHealthSettings
const failed = { isSilent: false }

function start(isProbed: (isSilent: boolean) => boolean = () => false) {
  const changes: boolean[] = []
  const changed = (isEjected: boolean) => void changes.push(isEjected)
  return { health: new Health(defaultHealthSettings, { isProbed, changed }), changes }
}

describe('an ejection', () => {
  test('begins with the last of the consecutive failures, and ends with a success', () => {
    const { health, changes } = start()
    for (let failure = 1; failure < failuresMax; failure++) health.fail(100)
    expect([health.isEjected, health.availability(100)]).toEqual([false, 'available'])
    health.fail(100)
    expect([health.isEjected, health.availability(100)]).toEqual([true, 'unavailable'])
    expect(health.availability(100 + ejectionMs - 1)).toBe('unavailable')
    expect(health.availability(100 + ejectionMs)).toBe('trial')
    health.succeed(100 + ejectionMs)
    expect([health.isEjected, health.failures, health.ejectionsTotal]).toEqual([false, 0, 1])
    expect(health.availability(100 + ejectionMs)).toBe('available')
    expect(changes).toEqual([true, false])
  })

  test('of one that was admitted begins again with its next failure', () => {
    const { health } = start()
    for (let failure = 1; failure <= failuresMax; failure++) health.fail(0)
    health.admit(ejectionMs)
    expect(health.isEjected).toBe(false)
    health.fail(ejectionMs)
    expect(health.isEjected).toBe(true)
  })

  test('is not prolonged by requests that were sent before it', () => {
    const { health, changes } = start()
    health.eject(0, failed)
    health.eject(ejectionMs - 1, { isSilent: true })
    expect([health.ejectedUntilMs, health.isSilent, health.ejectionsTotal]).toEqual([
      ejectionMs,
      false,
      1,
    ])
    health.eject(ejectionMs, { isSilent: true })
    expect([health.ejectedUntilMs, health.isSilent, health.ejectionsTotal]).toEqual([
      3 * ejectionMs,
      true,
      1,
    ])
    expect(changes).toEqual([true])
  })

  test('has one request on trial at a time', () => {
    const { health } = start()
    health.eject(0, failed)
    health.beginTrial()
    expect(health.availability(ejectionMs)).toBe('unavailable')
    health.endTrial()
    expect(health.availability(ejectionMs)).toBe('trial')
  })

  test('has a trial though the one of the ejection before has not ended', () => {
    const { health } = start()
    health.eject(0, failed)
    health.beginTrial()
    health.admit(ejectionMs)
    health.eject(ejectionMs, failed)
    expect(health.availability(3 * ejectionMs)).toBe('trial')
  })

  test.each([
    ['doubles', ejectionMaxMs, 2 * ejectionMs],
    ['is short again', ejectionMaxMs + 1, ejectionMs],
  ])('%s %d ms after the return', (_, sinceMs, durationMs) => {
    const { health } = start()
    health.eject(0, failed)
    health.admit(ejectionMs)
    const nowMs = ejectionMs + sinceMs
    health.eject(nowMs, failed)
    expect(health.ejectedUntilMs - nowMs).toBe(durationMs)
  })

  test('grows up to the longest one', () => {
    const { health } = start()
    const durationsMs = Array.from({ length: 6 }, () => {
      const nowMs = health.ejectedUntilMs
      health.eject(nowMs, failed)
      return health.ejectedUntilMs - nowMs
    })
    expect(durationsMs).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000])
  })

  test('waits for a check, if there is one, and forgets it with a success', () => {
    const { health } = start((isSilent) => isSilent)
    health.eject(0, { isSilent: true })
    expect([health.awaitsProbe, health.availability(ejectionMs)]).toEqual([true, 'unavailable'])
    health.admit(ejectionMs)
    expect([health.awaitsProbe, health.isSilent]).toEqual([false, false])
    health.eject(ejectionMs, failed)
    expect(health.awaitsProbe).toBe(false)
  })
})

test('after a return the share grows from a tenth to the whole', () => {
  const { health } = start()
  expect(health.recoveredShare(0)).toBe(1)
  health.admit(0)
  expect(health.recoveredShare(0)).toBe(1)
  health.eject(0, failed)
  health.admit(1_000)
  const shares = [0, 0.05, 0.5, 1].map((part) => health.recoveredShare(1_000 + part * recoveryMs))
  expect(shares).toEqual([0.1, 0.1, 0.5, 1])
})

test('a pause is no ejection, is not shortened, and is bounded', () => {
  const { health, changes } = start()
  health.pause(0, 2_000)
  health.pause(0, 1_000)
  expect([health.availability(1_999), health.availability(2_000)]).toEqual([
    'unavailable',
    'available',
  ])
  expect([health.isEjected, health.unavailableUntilMs]).toEqual([false, 2_000])
  health.pause(0, 10 * ejectionMaxMs)
  expect(health.unavailableUntilMs).toBe(ejectionMaxMs)
  expect(changes).toEqual([])
  health.eject(ejectionMaxMs, failed)
  expect(health.unavailableUntilMs).toBe(ejectionMaxMs + ejectionMs)
})

test('an upstream that never failed is neither silent nor awaits a check', () => {
  const { health, changes } = start()
  expect([health.isSilent, health.awaitsProbe, health.isDue(0)]).toEqual([false, false, false])
  health.admit(0)
  expect(changes).toEqual([])
})
