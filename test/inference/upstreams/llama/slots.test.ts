import { expect, test } from 'bun:test'
import { createSlots } from '#inference/upstreams/llama/slots.ts'

const stays = new AbortController().signal

test('queued requests acquire slots in order', async () => {
  const places = createSlots({ countMax: 1, waitingMax: 10 })
  const leave = await places.acquire(stays)
  const order: number[] = []
  const waiting = [1, 2, 3].map(async (number) => {
    const leaveToo = await places.acquire(stays)
    order.push(number)
    leaveToo()
  })
  expect(places.count()).toBe(4)
  leave()
  await Promise.all(waiting)
  expect(order).toEqual([1, 2, 3])
  expect(places.count()).toBe(0)
})

test('a slot that is released twice is free once', async () => {
  const places = createSlots({ countMax: 1, waitingMax: 0 })
  const leave = await places.acquire(stays)
  leave()
  leave()
  await places.acquire(stays)
  expect(await places.acquire(stays).catch(({ kind }) => kind)).toBe('upstream_overloaded')
})

test('an aborted request frees its place in the queue', async () => {
  const places = createSlots({ countMax: 1, waitingMax: 1 })
  const leave = await places.acquire(stays)
  const leaving = new AbortController()
  const waiting = places.acquire(leaving.signal)
  leaving.abort(new Error('gone'))
  expect(await waiting.catch(({ message }) => message)).toBe('gone')
  const next = places.acquire(stays)
  leave()
  expect(await next).toBeFunction()
})

test('an aborted request never acquires a slot', async () => {
  const places = createSlots({ countMax: 1, waitingMax: 1 })
  const gone = AbortSignal.abort(new Error('gone'))
  expect(await places.acquire(gone).catch(({ message }) => message)).toBe('gone')
  expect(places.count()).toBe(0)
})
