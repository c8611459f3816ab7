import { describe, expect, test } from 'bun:test'
import { speechFile, speechToolsExist, toolOutput } from '#test/support/speech-material.ts'
import {
  bytesByDice,
  cutEvery,
  decodeAll,
  decodingError,
  joinBytes,
  joinSamples,
  snrDb,
} from './decoding.ts'
import { readPackets, readPages, writePages, writeStream } from './ogg-builder.ts'

const opus = { encoding: 'opus' } as const

describe.skipIf(!speechToolsExist)('Opus in Ogg', () => {
  const file = speechToolsExist ? speechFile('fox', 'ogg') : new Uint8Array()
  const pages = readPages(file)
  const [head = new Uint8Array(), , ...packets] = readPackets(file)

  test('does not depend on page sizes and packets that span pages', async () => {
    const { samples } = await decodeAll(opus, file)
    const granuleEnd = pages.at(-1)?.granule ?? 0n
    for (const segmentsMax of [1, 2, 7, 255]) {
      // Code 3 padding makes packets longer than a segment.
      const padded = packets.map((packet) => padPacket(packet, 600))
      const bytes = writeStream({ serial: 7, head, packets: padded, segmentsMax, granuleEnd })
      const decoded = await decodeAll(opus, cutEvery(bytes, 1000))
      expect(decoded.samples).toEqual(samples)
      expect(decoded.faults).toMatchObject({ corruptFrames: 0, gaps: 0 })
    }
  })

  test('is trimmed as its header and last page state', async () => {
    const preSkip = new DataView(head.buffer, head.byteOffset).getUint16(10, true)
    const whole = await decodeAll(opus, writeStream({ serial: 1, head, packets }))
    expect(whole.samples.length).toBe((packets.length * 960 - preSkip) / 3)
    const granuleEnd = BigInt(packets.length * 960 - 600)
    const cut = await decodeAll(opus, writeStream({ serial: 1, head, packets, granuleEnd }))
    expect(cut.samples).toEqual(whole.samples.slice(0, -200))
    const longer = head.slice()
    new DataView(longer.buffer).setUint16(10, 9600, true)
    const skipped = await decodeAll(opus, writeStream({ serial: 1, head: longer, packets }))
    expect(skipped.samples).toEqual(whole.samples.slice((9600 - preSkip) / 3))
  })

  test('applies the gain of its header', async () => {
    const softer = head.slice()
    new DataView(softer.buffer).setInt16(16, -6 * 256, true)
    const plain = await decodeAll(opus, writeStream({ serial: 1, head, packets }))
    const soft = await decodeAll(opus, writeStream({ serial: 1, head: softer, packets }))
    const wanted = plain.samples.map((sample) => Math.round(sample * 10 ** (-6 / 20)))
    expect(snrDb(wanted, soft.samples)).toBeGreaterThan(50)
  })

  test('may be chained thousands of times', async () => {
    const short = writeStream({ serial: 3, head, packets: packets.slice(40, 44) })
    const once = await decodeAll(opus, short)
    const fox = await decodeAll(opus, file)
    const count = 3000
    const decoded = await decodeAll(opus, [...Array<Uint8Array>(count).fill(short), file])
    expect(decoded.samples.length).toBe(count * once.samples.length + fox.samples.length)
    expect(once.samples).toEqual(decoded.samples.slice(0, once.samples.length))
    expect(fox.samples).toEqual(decoded.samples.slice(count * once.samples.length))
    const door = await decodeAll(opus, speechFile('door', 'ogg'))
    const both = await decodeAll(opus, joinBytes(file, speechFile('door', 'ogg')))
    expect(both.samples).toEqual(joinSamples([fox.samples, door.samples]))
  })

  test('continues after corrupt or missing bytes and counts them', async () => {
    const { samples } = await decodeAll(opus, file)
    const lost = await decodeAll(opus, writePages(pages.toSpliced(4, 1)))
    expect(lost.faults).toMatchObject({ gaps: 1, corruptFrames: 0 })
    expect(lost.samples.length).toBe(samples.length)

    const broken = file.slice()
    const at = writePages(pages.slice(0, 4)).length + 500
    broken[at] = (broken[at] ?? 0) ^ 1
    const repaired = await decodeAll(opus, broken)
    expect(repaired.faults.gaps).toBe(1)
    expect(repaired.faults.corruptFrames).toBeGreaterThan(0)
    expect(repaired.samples).toEqual(lost.samples)

    const garbage = bytesByDice(1, 5000)
    const [start, rest] = [writePages(pages.slice(0, 4)), writePages(pages.slice(4))]
    for (const count of [1, 7, 5000]) {
      const between = await decodeAll(opus, cutEvery(joinBytes(start, garbage, rest), count))
      expect(between.samples).toEqual(samples)
      expect(between.faults).toMatchObject({ gaps: 0, corruptFrames: 2 })
    }
  })

  test('skips other streams and tags of any length', async () => {
    const { samples } = await decodeAll(opus, file)
    const video = {
      ...pages[0],
      serial: 99,
      body: new TextEncoder().encode('\u0080theora...........'),
    }
    const other = { flags: 2, granule: 0n, sequence: 0, ...video, lacing: [video.body.length] }
    const beside = pages.flatMap((page) => [page, { ...other, flags: page.flags & 2 }])
    for (const mixed of [beside, [other, ...beside]]) {
      expect((await decodeAll(opus, writePages(mixed))).samples).toEqual(samples)
    }
    const tags = joinBytes(new TextEncoder().encode('OpusTags'), bytesByDice(2, 400_000))
    const granuleEnd = pages.at(-1)?.granule ?? 0n
    const tagged = await decodeAll(
      opus,
      writeStream({ serial: 1, head, tags, packets, granuleEnd }),
    )
    expect(tagged.samples).toEqual(samples)
    expect(tagged.faults).toMatchObject({ gaps: 0, corruptFrames: 0 })
  })

  test('replaces undecodable packets with silence and drops empty ones', async () => {
    const plain = await decodeAll(opus, writeStream({ serial: 1, head, packets }))
    // It states the length of a missing frame.
    const code2 = ((packets[50]?.[0] ?? 0) & 0xfc) | 2
    const broken = packets.with(50, Uint8Array.of(code2, 255))
    const decoded = await decodeAll(opus, writeStream({ serial: 1, head, packets: broken }))
    expect(decoded.faults.corruptFrames).toBe(1)
    expect(decoded.samples.length).toBe(plain.samples.length + 320)
    const empty = packets.toSpliced(50, 0, new Uint8Array())
    const dropped = await decodeAll(opus, writeStream({ serial: 1, head, packets: empty }))
    expect(dropped.samples).toEqual(plain.samples)
    expect(dropped.faults.corruptFrames).toBe(0)
  })
})

describe.skipIf(!speechToolsExist)('an unsupported Ogg stream is refused with a reason', () => {
  const ffmpeg = ['ffmpeg', '-v', 'error', '-y', '-i', 'IN']

  test('other codecs', async () => {
    const fox = speechFile('fox', 'wav')
    const flac = toolOutput([...ffmpeg, '-c:a', 'flac', '-f', 'ogg', 'OUT'], fox)
    const vorbis = toolOutput([...ffmpeg, '-c:a', 'libvorbis', '-f', 'ogg', 'OUT'], fox)
    for (const [bytes, codec] of [
      [flac, 'flac'],
      [vorbis, 'vorbis'],
      [joinBytes(speechFile('fox', 'ogg'), vorbis), 'vorbis'],
    ] as const) {
      const error = await decodingError(opus, bytes)
      expect(error).toMatchObject({ code: 'unsupported_audio', details: { codec } })
    }
  })

  test('a missing or damaged header', async () => {
    const pages = readPages(speechFile('fox', 'ogg'))
    expect((await decodingError(opus, writePages(pages.slice(1)))).code).toBe('bad_audio')
    const [head] = readPackets(speechFile('fox', 'ogg'))
    const wrong = [
      head?.slice(0, 18),
      head?.with(8, 0x10),
      head?.with(9, 3),
      head?.with(18, 1),
      joinBytes(head?.with(18, 255) ?? new Uint8Array(), Uint8Array.of(1, 0, 9)),
      joinBytes(head?.with(18, 255) ?? new Uint8Array(), Uint8Array.of(255, 0, 0)),
    ]
    for (const bytes of wrong) {
      const stream = writeStream({ serial: 1, head: bytes ?? new Uint8Array(), packets: [] })
      expect((await decodingError(opus, stream)).code).toBe('bad_audio')
    }
    const many = writeStream({
      serial: 1,
      head: head?.with(18, 255).with(9, 20) ?? new Uint8Array(),
      packets: [],
    })
    expect((await decodingError(opus, many)).code).toBe('unsupported_audio')
  })

  test('bytes without pages', async () => {
    const bytes = joinBytes(speechFile('fox', 'ogg'), bytesByDice(4, 500_000))
    expect((await decodingError(opus, bytes)).code).toBe('bad_audio')
    // Each of these claims the maximum page length.
    const start = joinBytes(new TextEncoder().encode('OggS'), new Uint8Array(22))
    const head = joinBytes(start, new Uint8Array(256).fill(255))
    const heads = joinBytes(speechFile('fox', 'ogg'), ...Array<Uint8Array>(400).fill(head))
    const error = await decodingError(opus, heads)
    expect(error).toMatchObject({ code: 'bad_audio', details: { corrupt_frames: 101 } })
  })
})

/** The same packet with padding (RFC 6716, 3.2.5). */
function padPacket(packet: Uint8Array, bytes: number): Uint8Array {
  const [first = 0] = packet
  if ((first & 3) !== 0) return packet
  const lengths = [...Array<number>(Math.floor(bytes / 254)).fill(255), bytes % 254]
  return joinBytes(
    Uint8Array.of(first | 3, 0x41, ...lengths),
    packet.subarray(1),
    new Uint8Array(bytes),
  )
}
