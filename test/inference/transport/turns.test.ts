import { expect, test } from 'bun:test'
import type { ChunkQueue } from '#inference/transport/chunk-queue.ts'
import { createTurn } from '#inference/transport/turn.ts'
import { RecordingQueue } from './recording-queue.ts'

const chunkOf = (bytes: number) => ({ bytes: Buffer.alloc(bytes), start: 0, end: bytes })
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** Reads on and on; `read` is the bytes that each queue has delivered so far. */
function readOn(queues: readonly ChunkQueue[]): number[] {
  const read = queues.map(() => 0)
  for (const [at, queue] of queues.entries()) {
    void (async () => {
      for await (const { start, end } of queue) read[at] = (read[at] ?? 0) + end - start
    })()
  }
  return read
}

test('streams that flood share a turn, and each continues in the next ones', async () => {
  const turn = createTurn(32_768)
  const queues = Array.from({ length: 4 }, () => new RecordingQueue([], { bytesMax: 1e6, turn }))
  const read = readOn(queues)
  for (const queue of queues) queue.push(chunkOf(65_536))
  const total = () => read.reduce((sum, bytes) => sum + bytes, 0)
  let turns = 0
  while (total() < 4 * 65_536) {
    const before = total()
    await nextTurn()
    turns += 1
    expect(total() - before).toBeLessThanOrEqual(32_768)
    // None is more than a piece ahead of the others.
    expect(Math.max(...read) - Math.min(...read)).toBeLessThanOrEqual(16_384)
  }
  expect(turns).toBeGreaterThanOrEqual(7)
  expect(read).toEqual([65_536, 65_536, 65_536, 65_536])
})

test('a source is paused while its chunk waits for the next turn', async () => {
  const turn = createTurn(1_000)
  const [first, second]: [string[], string[]] = [[], []]
  const flood = new RecordingQueue(first, { bytesMax: 1e6, turn })
  const other = new RecordingQueue(second, { bytesMax: 1e6, turn })
  const read = readOn([flood, other])
  await nextTurn()
  flood.push(chunkOf(1_000))
  other.push(chunkOf(10))
  expect(second).toEqual(['pause'])
  expect(read[1]).toBe(0)
  await nextTurn()
  expect(second).toEqual(['pause', 'resume'])
  expect(read[1]).toBe(10)
  expect(first).toEqual([])
})

test('many streams that send a little in each turn are never paused', async () => {
  const turn = createTurn(1_000)
  const told: string[] = []
  const queues = Array.from({ length: 40 }, () => new RecordingQueue(told, { bytesMax: 1e6, turn }))
  const read = readOn(queues)
  for (let round = 0; round < 10; round++) {
    await nextTurn()
    for (const queue of queues) queue.push(chunkOf(10))
  }
  await nextTurn()
  expect(told).toEqual([])
  expect(read).toEqual(queues.map(() => 100))
})

test('an abort does not wait for the next turn', async () => {
  const turn = createTurn(1)
  const queue = new RecordingQueue([], { bytesMax: 1e6, turn })
  turn.spend(1)
  const next = queue.next()
  queue.push(chunkOf(10))
  queue.abort(new Error('aborted'))
  await expect(next).rejects.toThrow('aborted')
  expect(turn.isOver()).toBe(true)
})
