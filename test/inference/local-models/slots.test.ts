import { expect, test } from 'bun:test'
import { createSlots } from '#inference/local-models/slots.ts'

const neverAborted = new AbortController().signal

test('queued requests acquire slots in order', async () => {
  const slots = createSlots({ slotsMax: 1, queueMax: 10 })
  const release = await slots.acquire(neverAborted)
  const order: number[] = []
  const queued = [1, 2, 3].map(async (number) => {
    const releaseNext = await slots.acquire(neverAborted)
    order.push(number)
    releaseNext()
  })
  expect(slots.count()).toBe(4)
  release()
  await Promise.all(queued)
  expect(order).toEqual([1, 2, 3])
  expect(slots.count()).toBe(0)
})

test('a slot that is released twice is free once', async () => {
  const slots = createSlots({ slotsMax: 1, queueMax: 0 })
  const release = await slots.acquire(neverAborted)
  release()
  release()
  await slots.acquire(neverAborted)
  expect(await slots.acquire(neverAborted).catch(({ kind }) => kind)).toBe('upstream_overloaded')
})

test('an aborted request frees its place in the queue', async () => {
  const slots = createSlots({ slotsMax: 1, queueMax: 1 })
  const release = await slots.acquire(neverAborted)
  const leaving = new AbortController()
  const queued = slots.acquire(leaving.signal)
  leaving.abort(new Error('gone'))
  expect(await queued.catch(({ message }) => message)).toBe('gone')
  const next = slots.acquire(neverAborted)
  release()
  expect(await next).toBeFunction()
})

test('an aborted request never acquires a slot', async () => {
  const slots = createSlots({ slotsMax: 1, queueMax: 1 })
  const gone = AbortSignal.abort(new Error('gone'))
  expect(await slots.acquire(gone).catch(({ message }) => message)).toBe('gone')
  expect(slots.count()).toBe(0)
})
