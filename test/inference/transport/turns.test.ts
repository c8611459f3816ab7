import { expect, test } from 'bun:test'
import { ChunkQueue } from '#inference/transport/chunk-queue.ts'
import { createTurn } from '#inference/transport/turn.ts'

const source = () => {
  const calls: string[] = []
  return {
    calls,
    pause: () => void calls.push('pause'),
    resume: () => void calls.push('resume'),
    stop: () => {},
  }
}
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
  const queues = Array.from({ length: 4 }, () => new ChunkQueue(source(), { bytesMax: 1e6, turn }))
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
  const [first, second] = [source(), source()]
  const [flood, other] = [first, second].map(
    (each) => new ChunkQueue(each, { bytesMax: 1e6, turn }),
  )
  if (flood === undefined || other === undefined) throw new Error('two queues')
  const read = readOn([flood, other])
  await nextTurn()
  flood.push(chunkOf(1_000))
  other.push(chunkOf(10))
  expect(second.calls).toEqual(['pause'])
  expect(read[1]).toBe(0)
  await nextTurn()
  expect(second.calls).toEqual(['pause', 'resume'])
  expect(read[1]).toBe(10)
  expect(first.calls).toEqual([])
})

test('an abort does not wait for the next turn', async () => {
  const turn = createTurn(1)
  const queue = new ChunkQueue(source(), { bytesMax: 1e6, turn })
  turn.spend(1)
  const next = queue.next()
  queue.push(chunkOf(10))
  queue.abort(new Error('aborted'))
  await expect(next).rejects.toThrow('aborted')
  expect(turn.isOver()).toBe(true)
})
