import { expect, test } from 'bun:test'
import { canOpen, descriptorsNeeded, readDescriptors, streamsWithin } from '#lib/descriptors.ts'

const config = {
  limits: { streamsMax: 1_000 },
  speech: { sessionsMax: 100 },
  databaseConnectionsMax: 10,
}

test('streams get the descriptors beyond the reserve, two each', () => {
  const reserve = descriptorsNeeded({
    limits: { streamsMax: 0 },
    speech: { sessionsMax: 0 },
    databaseConnectionsMax: 10,
  })
  expect(descriptorsNeeded(config)).toBe(2 * 1_100 + reserve)
  expect(streamsWithin({ limit: 20_000, open: 100 }, config)).toBe((19_900 - reserve) / 2)
})

test('a small limit is shared equally; an exhausted one allows no stream', () => {
  expect(streamsWithin({ limit: 200, open: 100 }, config)).toBe(25)
  expect(streamsWithin({ limit: 100, open: 120 }, config)).toBe(0)
})

test.skipIf(process.platform !== 'linux')('a process reads its own limit', () => {
  const { limit = 0, open = 0 } = readDescriptors() ?? {}
  expect(open).toBeGreaterThan(2)
  expect(limit).toBeGreaterThan(open)
  expect(canOpen(1)).toBe(true)
})
