import { expect, test } from 'bun:test'
import { inFlightShare } from '#models/in-flight-share.ts'

test('the workers of a machine together keep the configured number', () => {
  for (let workers = 1; workers <= 6; workers++) {
    for (let maxInFlight = workers; maxInFlight <= 20; maxInFlight++) {
      const shares = Array.from({ length: workers }, (_, workerIndex) =>
        inFlightShare(maxInFlight, { workers, workerIndex }),
      )
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(maxInFlight)
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
    }
  }
})

test('each worker gets at least one, and without a number there is no limit', () => {
  expect(inFlightShare(1, { workers: 3, workerIndex: 2 })).toBe(1)
  expect(inFlightShare(undefined, { workers: 3 })).toBe(Number.POSITIVE_INFINITY)
})
