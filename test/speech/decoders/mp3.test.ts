import { describe, expect, test } from 'bun:test'
import { speechFile, speechToolsExist, toolOutput } from '#test/support/speech-material.ts'
import {
  bytesByDice,
  cutByDice,
  cutEvery,
  decodeAll,
  decodingError,
  joinBytes,
  snrDb,
} from './decoding.ts'

const mp3 = { encoding: 'mp3' } as const

describe.skipIf(!speechToolsExist)('MP3', () => {
  const file = speechToolsExist ? speechFile('fox', 'mp3') : new Uint8Array()

  test('is decoded from its first audio, after any prefix', async () => {
    const { samples } = await decodeAll(mp3, file)
    const before = {
      'a tag with a picture': id3Tag(60_000),
      'two tags': joinBytes(id3Tag(10), id3Tag(5000)),
      zeros: new Uint8Array(20_000),
      garbage: bytesByDice(9, 5000),
    }
    for (const bytes of Object.values(before)) {
      for (const count of [3, 4096]) {
        const decoded = await decodeAll(mp3, cutEvery(joinBytes(bytes, file), count))
        expect(decoded.samples).toEqual(samples)
      }
    }
  })

  test('decoded from the middle gives the same samples', async () => {
    const whole = await decodeAll(mp3, file, 32_000)
    const joined = await decodeAll(mp3, file.slice(5000), 32_000)
    // The first frames depend on missing ones; the end padding is stated in the missing header.
    const lateBy = whole.samples.length - joined.samples.length
    const places = Array.from({ length: 2304 }, (_, at) => lateBy - 1152 + at)
    const part = joined.samples.slice(20_000, 40_000)
    const likeness = places.map((at) => snrDb(whole.samples.subarray(at + 20_000), part))
    expect(Math.max(...likeness)).toBeGreaterThan(60)
  })

  test('may change its sample rate', async () => {
    const other = encoded(['-ar', '44100', '-b:a', '64k'])
    const parts = [file, other, file]
    const bytes = joinBytes(...parts)
    const decoded = await decodeAll(mp3, bytes)
    const lengths = await Promise.all(
      parts.map(async (part) => (await decodeAll(mp3, part)).samples.length),
    )
    const expected = lengths.reduce((sum, length) => sum + length, 0)
    // Later files may keep their encoder's padding: at most 0.1 s each.
    expect(decoded.samples.length).toBeGreaterThanOrEqual(expected)
    expect(decoded.samples.length).toBeLessThan(expected + 3200)
    expect(await decodeAll(mp3, cutEvery(bytes, 7))).toEqual(decoded)
    const first = await decodeAll(mp3, file)
    expect(first.samples.slice(0, 80_000)).toEqual(decoded.samples.slice(0, 80_000))
  })

  test('with variable and low bit rates has its full length', async () => {
    for (const options of [
      ['-q:a', '5'],
      ['-ar', '8000', '-b:a', '8k'],
      ['-ac', '2', '-b:a', '320k'],
    ]) {
      const bytes = encoded(options)
      const decoded = await decodeAll(mp3, bytes)
      expect(decoded.samples.length).toBeGreaterThanOrEqual(91_270)
      expect(await decodeAll(mp3, cutEvery(bytes, 3))).toEqual(decoded)
    }
  })

  test('continues after corrupt bytes and counts them', async () => {
    const whole = await decodeAll(mp3, file)
    const broken = file.slice()
    broken.set(bytesByDice(1, 3000), 10_000)
    const decoded = await decodeAll(mp3, broken)
    expect(decoded.samples.length).toBeLessThan(whole.samples.length)
    expect(decoded.samples.length).toBeGreaterThan(whole.samples.length * 0.8)
    // The result is the same for any chunking, even of corrupt bytes.
    for (let seed = 1; seed <= 8; seed++) {
      broken.set(bytesByDice(seed, 200), 1000 * seed)
      const whole = await decodeAll(mp3, broken)
      for (const parts of [cutEvery(broken, 1), cutByDice(broken, seed, 300)]) {
        expect(await decodeAll(mp3, parts)).toEqual(whole)
      }
    }
  })

  test('skips a tag of any size between two files', async () => {
    const direct = await decodeAll(mp3, joinBytes(file, file))
    for (const bytes of [id3Tag(3_000_000), joinBytes(id3Tag(5), id3Tag(70))]) {
      const decoded = await decodeAll(mp3, cutEvery(joinBytes(file, bytes, file), 1013))
      expect(decoded).toEqual(direct)
    }
  })

  test('that is not MP3 fails', async () => {
    const garbage = bytesByDice(2, 1_000_000)
    expect((await decodingError(mp3, garbage)).code).toBe('bad_audio')
    const endless = id3Tag(10)
    endless.set([0x7f, 0x7f, 0x7f, 0x7f], 6)
    expect((await decodingError(mp3, endless)).code).toBe('bad_audio')
  })

  test('never writes to the console', async () => {
    const script = `
      import { bytesByDice, decodeAll, joinBytes } from '#test/speech/decoders/decoding.ts'
      for (let seed = 1; seed <= 40; seed++) {
        for (const second of [0xfb, 0xfd, 0xff]) {
          const bytes = joinBytes(Uint8Array.of(255, second, 144, 0), bytesByDice(seed, 6000))
          for (const container of ['auto', 'raw']) {
            const encoding = container === 'raw' ? 'opus' : 'mp3'
            await decodeAll({ encoding, container }, bytes).catch(() => {})
          }
        }
      }`
    const run = Bun.spawn([process.execPath, '-e', script], {
      cwd: `${import.meta.dir}/../../..`,
      stdout: 'pipe',
      stderr: 'pipe',
    })
    expect(await run.exited).toBe(0)
    expect(await new Response(run.stdout).text()).toBe('')
    expect(await new Response(run.stderr).text()).toBe('')
  })
})

function encoded(options: readonly string[]): Uint8Array {
  const command = ['ffmpeg', '-v', 'error', '-y', '-i', 'IN', ...options, '-f', 'mp3', 'OUT']
  return toolOutput(command, speechFile('fox', 'wav'))
}

function id3Tag(contentBytes: number): Uint8Array {
  const size = [21, 14, 7, 0].map((shift) => (contentBytes >> shift) & 0x7f)
  return joinBytes(
    new TextEncoder().encode('ID3'),
    Uint8Array.of(3, 0, 0, ...size),
    new Uint8Array(contentBytes),
  )
}
