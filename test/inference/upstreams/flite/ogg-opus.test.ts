import { expect, test } from 'bun:test'
import { OggOpusWriter } from '#inference/upstreams/flite/ogg-opus.ts'
import { oggChecksum, oggChecksumAt } from '#lib/ogg-checksum.ts'

const rateHz = 16_000
const frameBytes = 640

/** The pages of a stream, and the frames that were encoded. */
function write(samples: Uint8Array, pieces: readonly number[]) {
  const frames: Uint8Array[] = []
  const writer = new OggOpusWriter(rateHz, (frame) => {
    frames.push(frame.slice())
    // A packet may need several segments of a page, and fill them.
    const bytes = [80, 300, 510][frames.length % 3]
    return new Uint8Array(bytes ?? 0).fill(frames.length)
  })
  const parts = [writer.begin()]
  let at = 0
  for (const bytes of pieces) {
    parts.push(writer.push(samples.subarray(at, at + bytes)))
    at += bytes
  }
  parts.push(writer.push(samples.subarray(at)), writer.finish())
  return { stream: Buffer.concat(parts), frames }
}

/** Throws for a page whose checksum or place is wrong. */
function readPages(stream: Buffer) {
  const pages: { flag: number; position: number; packets: number }[] = []
  for (let at = 0; at < stream.length; ) {
    const segments = stream.readUInt8(at + 26)
    const lacing = stream.subarray(at + 27, at + 27 + segments)
    const end = at + 27 + segments + lacing.reduce((sum, bytes) => sum + bytes, 0)
    const page = stream.subarray(at, end)
    expect(page.readUInt32LE(oggChecksumAt)).toBe(oggChecksum(page))
    expect(page.readUInt32LE(18)).toBe(pages.length)
    pages.push({
      flag: page.readUInt8(5),
      position: Number(page.readBigInt64LE(6)),
      packets: lacing.filter((bytes) => bytes < 255).length,
    })
    at = end
  }
  return pages
}

test.each([
  ['no audio', 0, []],
  ['less than a frame', 100, []],
  ['whole frames', 4 * frameBytes, [frameBytes, 3 * frameBytes]],
  ['a last frame that is nearly full', frameBytes + 600, []],
  ['pieces that end within frames', 100_002, [2, 998, 640, 70_000]],
])('%s: every sample is encoded once, and the last page ends with it', (_, bytes, pieces) => {
  const samples = Uint8Array.from({ length: bytes }, (_, index) => 1 + (index % 251))
  const { stream, frames } = write(samples, pieces)
  const audio = Buffer.concat(frames)
  expect(audio.subarray(0, bytes).equals(samples)).toBe(true)
  expect(audio.subarray(bytes).every((byte) => byte === 0)).toBe(true)
  const pages = readPages(stream)
  const preSkip = stream.readUInt16LE(stream.indexOf('OpusHead') + 10)
  const last = pages.at(-1)
  expect(last).toMatchObject({ flag: 4, position: preSkip + 3 * (bytes / 2) })
  expect(pages.map(({ flag }) => flag)).toEqual([2, ...Array(pages.length - 2).fill(0), 4])
  const packets = pages.slice(2).reduce((sum, page) => sum + page.packets, 0)
  expect(packets).toBe(frames.length)
  // What is decoded reaches the end, which players cut exactly.
  expect(packets * 960).toBeGreaterThanOrEqual(last?.position ?? 0)
  expect(Math.max(...pages.map((page) => page.packets))).toBeLessThanOrEqual(50)
})
