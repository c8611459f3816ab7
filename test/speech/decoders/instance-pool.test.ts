import { expect, test } from 'bun:test'
import { createInstancePool } from '#speech/decoders/instance-pool.ts'

function arrange(streamsMax: number) {
  let opened = 0
  const pool = createInstancePool(async () => ++opened, streamsMax)
  return { pool, opened: () => opened }
}

test('streams share an instance up to its limit, also while it is being opened', async () => {
  const { pool, opened } = arrange(2)
  const leases = await Promise.all([pool.acquire(), pool.acquire(), pool.acquire()])
  expect(leases.map(({ instance }) => instance)).toEqual([1, 1, 2])
  expect(opened()).toBe(2)
})

test('a released place is used again; one instance without streams is kept', async () => {
  const { pool, opened } = arrange(1)
  const [one, other] = await Promise.all([pool.acquire(), pool.acquire()])
  one?.release()
  one?.release()
  other?.release()
  expect(pool.size()).toBe(1)
  const next = await pool.acquire()
  expect([next.instance, opened()]).toEqual([1, 2])
})

test('an instance that trapped gets no new streams, and its others go on', async () => {
  const { pool } = arrange(8)
  const [broken, beside] = await Promise.all([pool.acquire(), pool.acquire()])
  broken?.fail()
  broken?.release()
  expect(beside?.instance).toBe(1)
  expect((await pool.acquire()).instance).toBe(2)
})

test('an instance that cannot be opened is tried again by the next stream', async () => {
  let attempts = 0
  const pool = createInstancePool(async () => {
    attempts += 1
    if (attempts === 1) throw new Error('no memory')
    return attempts
  }, 8)
  await expect(pool.acquire()).rejects.toThrow('no memory')
  expect((await pool.acquire()).instance).toBe(2)
})
