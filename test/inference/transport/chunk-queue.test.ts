import { expect, test } from 'bun:test'
import type { ChunkQueue } from '#inference/transport/chunk-queue.ts'
import { type Chunk, chunkOf, viewOf } from '#inference/transport.ts'
import { RecordingQueue } from './recording-queue.ts'

/** A queue for this many bytes, and what it told its source. */
function open(bytesMax = 1_000_000) {
  const told: string[] = []
  const turn = { isOver: () => false, spend: () => {}, wait: () => {} }
  return { queue: new RecordingQueue(told, { bytesMax, turn: turn as never }), told }
}

const bytes = (count: number, value = 1) => chunkOf(new Uint8Array(count).fill(value))
const done = { done: true, value: undefined } as const
const read = async (queue: ChunkQueue) => {
  const { done, value } = await queue.next()
  return done ? null : [...viewOf(value as Chunk)]
}

test('a chunk that arrives before a queued one was delivered follows it', async () => {
  const { queue } = open()
  queue.push(bytes(1, 1))
  const first = read(queue)
  queue.push(bytes(1, 2))
  expect([await first, await read(queue)]).toEqual([[1], [2]])
})

test('chunks arrive in order, before and after a pull, and then the end', async () => {
  const { queue } = open()
  queue.push(bytes(1, 1))
  queue.push(bytes(1, 2))
  expect([await read(queue), await read(queue)]).toEqual([[1], [2]])
  const pending = read(queue)
  queue.push(bytes(1, 3))
  expect(await pending).toEqual([3])
  const last = queue.next()
  queue.complete()
  expect([await last, await queue.next()]).toEqual([done, done])
})

test('after the end nothing more arrives', async () => {
  const { queue } = open()
  queue.complete()
  queue.push(bytes(1))
  queue.fail(new Error('late'))
  expect([await queue.next(), await queue.next()]).toEqual([done, done])
})

test('a failure follows the chunks before it, once', async () => {
  const { queue } = open()
  queue.push(bytes(1))
  queue.fail(new Error('lost'))
  queue.complete()
  expect(await read(queue)).toEqual([1])
  await expect(queue.next()).rejects.toThrow('lost')
  expect(await queue.next()).toEqual(done)
})

test('an abort drops the chunks before it', async () => {
  const { queue } = open()
  queue.push(bytes(1))
  queue.abort(new Error('gone'))
  await expect(queue.next()).rejects.toThrow('gone')
})

test('a consumer that returns stops the source, and gets nothing more', async () => {
  const { queue, told } = open()
  queue.push(bytes(1))
  expect(await queue.return()).toEqual(done)
  queue.push(bytes(1))
  expect([await queue.next(), told]).toEqual([done, ['stop']])
})

test('a consumer that returns during a pull ends it', async () => {
  const { queue } = open()
  const pending = queue.next()
  await queue.return()
  expect(await pending).toEqual(done)
})

test('a full queue pauses the source until half of it is read', async () => {
  // 872 bytes and 128 for the object.
  const { queue, told } = open(4_000)
  for (let chunk = 0; chunk < 3; chunk++) queue.push(bytes(872))
  expect(told).toEqual([])
  queue.push(bytes(872))
  expect(told).toEqual(['pause'])
  await read(queue)
  expect(told).toEqual(['pause'])
  await read(queue)
  expect(told).toEqual(['pause', 'resume'])
})

test('a long chunk is divided, and a short one is not', async () => {
  const { queue } = open()
  queue.push(bytes(16_384))
  queue.push(bytes(40_000))
  const lengths = [await read(queue), await read(queue), await read(queue), await read(queue)]
  expect(lengths.map((piece) => piece?.length)).toEqual([16_384, 16_384, 16_384, 7_232])
  const pending = read(queue)
  queue.push(bytes(20_000))
  expect((await pending)?.length).toBe(16_384)
})
