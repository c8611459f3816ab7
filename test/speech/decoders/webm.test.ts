import { describe, expect, test } from 'bun:test'
import { speechFile, speechToolsExist, toolOutput } from '#test/support/speech-material.ts'
import { bytesByDice, cutEvery, decodeAll, decodingError, joinBytes } from './decoding.ts'
import { readPackets, writeStream } from './ogg-builder.ts'
import {
  blockGroup,
  cluster,
  element,
  ids,
  lacedBlock,
  numberElement,
  simpleBlock,
  trackEntry,
  webmStart,
} from './webm-builder.ts'

const opus = { encoding: 'opus' } as const

describe.skipIf(!speechToolsExist)('Opus in WebM', () => {
  const file = speechToolsExist ? speechFile('fox', 'ogg') : new Uint8Array()
  const [head = new Uint8Array(), , ...packets] = readPackets(file)
  const track = trackEntry({ number: 1, type: 2, codec: 'A_OPUS', codecPrivate: head })
  const blocks = packets.map((packet) => simpleBlock(1, packet))
  const plain = async () =>
    (await decodeAll(opus, writeStream({ serial: 1, head, packets }))).samples

  test('does not depend on the layout of its elements', async () => {
    const samples = await plain()
    const start = webmStart([track])
    const index = [element(ids.void, new Uint8Array(3000)), element(ids.cues, bytesByDice(1, 99))]
    const layouts = {
      'one cluster of unknown size': [start, cluster(blocks)],
      'many clusters of known size': [start, ...blocks.map((block) => cluster([block], 'known'))],
      'sizes in eight bytes': [start, ...blocks.map((block) => cluster([block], 8))],
      'block groups': [start, cluster(packets.map((packet) => blockGroup(1, packet)))],
      'voids and indexes between them': [
        start,
        ...index,
        cluster(blocks.slice(0, 9)),
        ...index,
      ].concat(cluster(blocks.slice(9))),
    }
    for (const parts of Object.values(layouts)) {
      const bytes = joinBytes(...parts)
      for (const count of [bytes.length, 1, 997]) {
        const decoded = await decodeAll(opus, cutEvery(bytes, count))
        expect(decoded.samples).toEqual(samples)
        expect(decoded.faults).toMatchObject({ corruptFrames: 0, gaps: 0 })
      }
    }
  })

  test('is extracted next to video blocks of any size', async () => {
    const samples = await plain()
    const picture = trackEntry({ number: 1, type: 1, codec: 'V_VP8' })
    const sound = trackEntry({ number: 2, type: 2, codec: 'A_OPUS', codecPrivate: head })
    const mixed = packets.flatMap((packet, at) => [
      simpleBlock(1, bytesByDice(at, at === 7 ? 200_000 : 300)),
      simpleBlock(2, packet),
    ])
    const decoded = await decodeAll(opus, joinBytes(webmStart([picture, sound]), cluster(mixed)))
    expect(decoded.samples).toEqual(samples)
    expect(decoded.faults.corruptFrames).toBe(0)
  })

  test('is trimmed as its delay and padding state', async () => {
    const samples = await plain()
    const delayed = trackEntry({
      number: 1,
      type: 2,
      codec: 'A_OPUS',
      codecPrivate: head,
      codecDelayNs: 80_000_000,
    })
    const late = await decodeAll(opus, joinBytes(webmStart([delayed]), cluster(blocks)))
    const preSkip = new DataView(head.buffer, head.byteOffset).getUint16(10, true)
    expect(late.samples).toEqual(samples.slice((3840 - preSkip) / 3))
    const padded = [...blocks.slice(0, -1), blockGroup(1, packets.at(-1) ?? head, 12_500_000)]
    const cut = await decodeAll(opus, joinBytes(webmStart([track]), cluster(padded)))
    expect(cut.samples).toEqual(samples.slice(0, -200))
  })

  test('continues with the next cluster after corrupt bytes and counts them', async () => {
    const samples = await plain()
    const start = joinBytes(webmStart([track]), cluster(blocks.slice(0, 100)))
    const rest = cluster(blocks.slice(100))
    for (const count of [1, 7, 100_000]) {
      // An invalid first byte.
      const garbage = joinBytes(Uint8Array.of(0), bytesByDice(3, 5000))
      const bytes = cutEvery(joinBytes(start, garbage, rest), count)
      const decoded = await decodeAll(opus, bytes)
      expect(decoded.samples).toEqual(samples)
      expect(decoded.faults.corruptFrames).toBe(2)
    }
    const endless = joinBytes(start, Uint8Array.of(0), bytesByDice(4, 500_000))
    expect((await decodingError(opus, endless)).code).toBe('bad_audio')
  })

  test('is read from blocks with several packets of every lacing', async () => {
    const samples = await plain()
    for (const lacing of ['xiph', 'ebml'] as const) {
      for (const count of [1, 3, 8]) {
        const groups = Array.from({ length: Math.ceil(packets.length / count) }, (_, at) =>
          lacedBlock(1, packets.slice(at * count, (at + 1) * count), lacing),
        )
        const decoded = await decodeAll(opus, joinBytes(webmStart([track]), cluster(groups)))
        expect(decoded.samples, `${lacing} ${count}`).toEqual(samples)
        expect(decoded.faults).toMatchObject({ corruptFrames: 0, gaps: 0 })
      }
    }
    // Fixed lacing needs packets of one size.
    const equal = Array.from({ length: 12 }, () => packets[40] ?? head)
    const expected = await decodeAll(
      opus,
      joinBytes(webmStart([track]), cluster(equal.map((packet) => simpleBlock(1, packet)))),
    )
    const fixed = [0, 4, 8].map((at) => lacedBlock(1, equal.slice(at, at + 4), 'fixed'))
    const decoded = await decodeAll(opus, joinBytes(webmStart([track]), cluster(fixed)))
    expect(decoded.samples).toEqual(expected.samples)
    expect(decoded.faults.corruptFrames).toBe(0)
  })

  test('counts a block whose lacing is corrupt, and reads the others', async () => {
    const samples = await plain()
    const corrupt = [
      simpleBlock(1, new Uint8Array(), 0x82),
      simpleBlock(1, Uint8Array.of(2, 255, 255), 0x82),
      simpleBlock(1, Uint8Array.of(1, 200, 7), 0x82),
      simpleBlock(1, Uint8Array.of(1, 7, 7, 7), 0x84),
      simpleBlock(1, Uint8Array.of(2, 0x81, 0x80, 1), 0x86),
    ]
    const decoded = await decodeAll(
      opus,
      joinBytes(webmStart([track]), cluster([...corrupt, ...blocks])),
    )
    expect(decoded.samples).toEqual(samples)
    expect(decoded.faults.corruptFrames).toBe(corrupt.length)
  })

  test('is refused with a reason', async () => {
    const unsupported = {
      'another codec': [trackEntry({ number: 1, type: 2, codec: 'A_VORBIS' })],
      'no audio track': [trackEntry({ number: 1, type: 1, codec: 'V_VP8' })],
      'compressed once more': [
        trackEntry({
          number: 1,
          type: 2,
          codec: 'A_OPUS',
          more: [element(ids.contentEncodings, numberElement(0x5031, 0))],
        }),
      ],
    }
    for (const tracks of Object.values(unsupported)) {
      const error = await decodingError(opus, joinBytes(webmStart(tracks), cluster(blocks)))
      expect(error.code).toBe('unsupported_audio')
    }
    const headless = joinBytes(webmStart([]), cluster(blocks))
    expect((await decodingError(opus, headless)).code).toBe('bad_audio')
  })

  test('with Vorbis is refused, naming the codec', async () => {
    const bytes = toolOutput(
      [
        ...['ffmpeg', '-v', 'error', '-y', '-i', 'IN', '-c:a', 'libvorbis'],
        ...['-f', 'webm', 'OUT'],
      ],
      speechFile('fox', 'wav'),
    )
    expect(await decodingError(opus, bytes)).toMatchObject({
      code: 'unsupported_audio',
      details: { codec: 'A_VORBIS' },
    })
  })

  test('from a file with sizes and an index equals a live recording', async () => {
    const bytes = toolOutput(
      ['ffmpeg', '-v', 'error', '-y', '-i', 'IN', '-c:a', 'copy', '-f', 'matroska', 'OUT'],
      speechFile('fox', 'webm'),
    )
    const live = await decodeAll(opus, speechFile('fox', 'webm'))
    expect((await decodeAll(opus, bytes)).samples).toEqual(live.samples)
  })
})
