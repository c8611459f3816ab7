import { describe, expect, test } from 'bun:test'
import { createDice } from '#test/support/dice.ts'
import { speechFile, speechToolsExist, toolOutput } from '#test/support/speech-material.ts'
import { cutEvery, decodeAll, joinBytes } from './decoding.ts'
import { readPackets, readPages, writePages, writeStream } from './ogg-builder.ts'
import {
  cluster,
  element,
  ids,
  numberElement,
  simpleBlock,
  trackEntry,
  webmStart,
} from './webm-builder.ts'

/** Timestamps of containers: what is missing becomes silence and a gap, what is inexact does not. */

const opus = { encoding: 'opus' } as const
const packetMs = 20
const samplesPerMs = 16
const hourMs = 3_600_000

describe.skipIf(!speechToolsExist)('timestamps', () => {
  const file = speechToolsExist ? speechFile('fox', 'ogg') : new Uint8Array()
  const pages = readPages(file)
  const [head = new Uint8Array(), , ...packets] = readPackets(file)
  const track = trackEntry({ number: 1, type: 2, codec: 'A_OPUS', codecPrivate: head })

  /** A recording with one block per cluster; `timeMs`: the time of each block. */
  const webm = (timeMs: (index: number) => number, scaleNs?: number) =>
    joinBytes(
      webmStart([track]),
      ...(scaleNs === undefined ? [] : [element(ids.info, numberElement(0x2ad7b1, scaleNs))]),
      ...packets.map((packet, index) =>
        cluster([simpleBlock(1, packet)], 'known', Math.max(0, timeMs(index))),
      ),
    )
  const plainTime = (index: number) => index * packetMs
  const jump =
    (missingMs: number, from = 100) =>
    (index: number) =>
      plainTime(index) + (index >= from ? missingMs : 0)

  test('of WebM that jump are a gap, filled with up to two seconds of silence', async () => {
    const { samples } = await decodeAll(opus, webm(plainTime))
    for (const missingMs of [200, 1_999, 30_000, hourMs]) {
      const bytes = webm(jump(missingMs))
      for (const count of [bytes.length, 7]) {
        const decoded = await decodeAll(opus, cutEvery(bytes, count))
        const filledMs = Math.min(missingMs, 2_000)
        const at = samples.length - (packets.length - 100) * packetMs * samplesPerMs
        expect(decoded.gaps).toEqual([{ missingMs, filledMs, at }])
        expect(decoded.faults.gaps).toBe(1)
        expect(decoded.samples.length).toBe(samples.length + filledMs * samplesPerMs)
        const end = at + filledMs * samplesPerMs
        expect(decoded.samples.subarray(at, end).some((sample) => sample !== 0)).toBe(false)
        expect(decoded.samples.subarray(end)).toEqual(samples.subarray(at))
      }
    }
  })

  test('of WebM in another unit are understood', async () => {
    const decoded = await decodeAll(
      opus,
      webm((index) => jump(700)(index) * 10, 100_000),
    )
    expect(decoded.gaps).toMatchObject([{ missingMs: 700 }])
  })

  test('inside of a cluster and of the next one are compared alike', async () => {
    const blocks = packets.map((packet, index) => ({ packet, timeMs: jump(400, 60)(index) }))
    const bytes = joinBytes(
      webmStart([track]),
      ...[0, 50, 120].map((from, at, starts) =>
        cluster(
          blocks
            .slice(from, starts[at + 1])
            .map(({ packet, timeMs }) =>
              simpleBlock(1, packet, 0x80, timeMs - (blocks[from]?.timeMs ?? 0)),
            ),
          'unknown',
          blocks[from]?.timeMs,
        ),
      ),
    )
    expect((await decodeAll(opus, bytes)).gaps).toMatchObject([{ missingMs: 400 }])
  })

  const dice = createDice(1)
  test.each([
    ['that are rounded', (index: number) => plainTime(index) + (index % 2)],
    ['that are late by up to 100 ms', (index: number) => plainTime(index) + dice.upTo(100)],
    ['that start late', (index: number) => plainTime(index) + 50_000],
    ['that never change', () => 7],
    ['that start again', (index: number) => plainTime(index % 90)],
  ])('%s are no gap', async (_, timeMs) => {
    const { samples } = await decodeAll(opus, webm(plainTime))
    const decoded = await decodeAll(opus, webm(timeMs))
    expect(decoded.gaps).toEqual([])
    expect(decoded.samples).toEqual(samples)
    expect(decoded.faults.gaps).toBe(0)
  })

  test.each([1.0009, 0.9991])(
    'of a clock that runs at %p of the samples are no gap',
    async (speed) => {
      const minutes = Array.from({ length: 40 }, () => packets).flat()
      const blocks = minutes.map((packet, index) =>
        cluster([simpleBlock(1, packet)], 'known', Math.round(plainTime(index) * speed)),
      )
      const decoded = await decodeAll(opus, joinBytes(webmStart([track]), ...blocks))
      expect(decoded.gaps).toEqual([])
      expect(decoded.faults.gaps).toBe(0)
    },
  )

  test('of ffmpeg and opusenc are no gap', async () => {
    for (const form of ['webm', 'ogg'] as const) {
      const bytes = speechFile('door', form)
      for (const twice of [bytes, joinBytes(bytes, bytes)]) {
        const { gaps, faults } = await decodeAll(opus, twice)
        expect(gaps).toEqual([])
        expect(faults.gaps).toBe(0)
      }
    }
    const restarted = joinBytes(webm(plainTime), webm(jump(5_000, 0)), webm(plainTime))
    expect((await decodeAll(opus, restarted)).gaps).toEqual([])
  })

  test('that ffmpeg has moved are a gap', async () => {
    for (const [format, perMs] of [
      ['webm', 1],
      ['ogg', 48],
    ] as const) {
      const filter = `setts=ts=TS+gte(N\\,100)*${4_000 * perMs}`
      const copy = ['-c', 'copy', '-bsf:a', filter, '-f', format, 'OUT']
      const source = speechFile('fox', format)
      const bytes = toolOutput(['ffmpeg', '-v', 'error', '-y', '-i', 'IN', ...copy], source)
      const decoded = await decodeAll(opus, bytes)
      expect(decoded.gaps.map(({ missingMs }) => Math.round(missingMs / 10))).toEqual([400])
      expect(decoded.faults.gaps).toBe(1)
    }
  })

  test('of more than an hour in total are not believed', async () => {
    const { samples } = await decodeAll(opus, webm(plainTime))
    for (const missingMs of [hourMs + 1, 1e12, 2 ** 52]) {
      const decoded = await decodeAll(opus, webm(jump(missingMs)))
      expect(decoded.gaps).toEqual([])
      expect(decoded.samples).toEqual(samples)
      expect(decoded.faults.gaps).toBe(1)
    }
    const { gaps } = await decodeAll(
      opus,
      webm((index) => index * 60_000),
    )
    expect(gaps.length).toBe(60)
    const forged = pages.map((page, at) =>
      at < 4 ? page : { ...page, granule: page.granule + 2n ** 52n },
    )
    const ogg = await decodeAll(opus, writePages(forged))
    expect(ogg.gaps).toEqual([])
    expect(ogg.samples.length).toBe((await decodeAll(opus, file)).samples.length)
  })

  test('of any value are harmless', async () => {
    const bytes = webm(plainTime)
    for (let seed = 1; seed <= 12; seed++) {
      const noise = createDice(seed)
      const forged = bytes.slice()
      for (let at = 0; at < forged.length - 10; at++) {
        // The content of a timestamp.
        if (forged[at] !== 0xe7 || forged[at + 1] !== 0x88 || noise.upTo(3) > 0) continue
        for (let byte = 2; byte < 10; byte++) forged[at + byte] = noise.upTo(256)
      }
      const { samples } = await decodeAll(opus, forged)
      expect(samples.length).toBeLessThan(packets.length * 2_000 * samplesPerMs)
    }
  })

  test('of pages show how much was lost with others', async () => {
    const whole = await decodeAll(opus, file)
    for (const [from, count] of [
      [2, 1],
      [3, 1],
      [4, 2],
      [pages.length - 2, 1],
    ] as const) {
      const left = writePages(pages.toSpliced(from, count))
      for (const bytes of [left, ...[500, 1].map((size) => cutEvery(left, size))]) {
        const { samples, faults, gaps } = await decodeAll(opus, bytes)
        expect(samples.length).toBe(whole.samples.length)
        expect(faults.gaps).toBe(count)
        expect(gaps.length).toBe(1)
        const end = (gaps[0]?.at ?? 0) + (gaps[0]?.filledMs ?? 0) * samplesPerMs
        expect(end).toBeWithin(1, samples.length)
      }
    }
  })

  test('of pages whose packets continue on lost ones show the loss exactly', async () => {
    const whole = await decodeAll(opus, writeStream({ serial: 1, head, packets }))
    // Every packet has two segments, on two pages.
    const padded = packets.map((packet) => joinBytes(packet, new Uint8Array(300 - packet.length)))
    const split = readPages(writeStream({ serial: 1, head, packets: padded, segmentsMax: 1 }))
    for (const lost of [40, 41]) {
      const { samples, gaps } = await decodeAll(opus, writePages(split.toSpliced(lost, 1)))
      expect(gaps).toMatchObject([{ missingMs: packetMs, filledMs: packetMs }])
      expect(samples.length).toBe(whole.samples.length)
    }
  })

  test('of a stream that is joined late start where it is joined', async () => {
    const late = pages.map((page, at) =>
      at < 2 ? page : { ...page, granule: page.granule + 48_000n * 600n },
    )
    const { gaps, samples } = await decodeAll(opus, writePages(late))
    expect(gaps).toEqual([])
    expect(samples).toEqual((await decodeAll(opus, file)).samples)
  })
})
