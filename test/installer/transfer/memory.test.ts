import { afterEach, beforeEach, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import type { Fetch } from '#outbound/checked-fetch.ts'
import { type Bench, contentOf, openBench, remoteFile } from './transfer-fixture.ts'

const content = contentOf(24_000_000)
/** The write buffer of a connection, and the largest chunk of a `fetch` seen so far. */
const heldBytesMax = 1024 * 1024
const chunkBytes = 262_144
const blockBytes = 512
let bench: Bench

beforeEach(async () => {
  bench = await openBench()
})
afterEach(() => bench.close())

for (const connections of [1, 4]) {
  test(`${connections} connections hold no more than their buffers in memory`, async () => {
    const url = bench.origin.put('/model.gguf', content)
    const seen = { handedOut: 0, heldMost: 0 }
    const partPath = `${bench.folder}/counted`
    const onDisk = () => (statSync(partPath, { throwIfNoEntry: false })?.blocks ?? 0) * blockBytes
    const counting: Fetch = async (target, init) => {
      const answer = await fetch(target, init)
      const reader = answer.body?.getReader()
      const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
        seen.heldMost = Math.max(seen.heldMost, seen.handedOut - onDisk())
        const chunk = await reader?.read()
        if (chunk?.value === undefined) return controller.close()
        for (let at = 0; at < chunk.value.length; at += chunkBytes) {
          controller.enqueue(chunk.value.subarray(at, at + chunkBytes))
        }
        seen.handedOut += chunk.value.length
      }
      const body = new ReadableStream(
        { pull, cancel: () => reader?.cancel() },
        { highWaterMark: 0 },
      )
      return new Response(body, { status: answer.status, headers: answer.headers })
    }
    const { file } = await bench.transfer(remoteFile(url, content), {
      fetch: counting,
      part: 'counted',
      settings: { rangesMax: connections, rangeBytes: 4_000_000 },
    })
    expect(file?.isVerified).toBe(true)
    expect(seen.handedOut).toBeGreaterThanOrEqual(content.length)
    expect(seen.heldMost).toBeGreaterThan(0)
    // A chunk in flight, a chunk over the buffer limit, and one of a split range.
    expect(seen.heldMost).toBeLessThanOrEqual(connections * (heldBytesMax + 3 * chunkBytes))
  })
}
