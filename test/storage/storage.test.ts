import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, toAppError } from '#lib/errors.ts'
import { createDiskStorage } from '#storage/disk.ts'
import { createS3Storage } from '#storage/s3.ts'
import type { Storage, StoredContent } from '#storage/storage.ts'
import { s3Settings } from '#test/support/s3-server.ts'

const now = () => new Date()
const limits = { bytesMax: 50_000_000 }

const kinds = [
  { kind: 'disk', open: (folder: string) => createDiskStorage({ folder, now }), isThere: true },
  {
    kind: 'S3',
    open: (folder: string) => {
      if (s3Settings === undefined) throw new Error('there is no S3 server')
      return createS3Storage({ settings: s3Settings, folder, now })
    },
    isThere: s3Settings !== undefined,
  },
]

for (const { kind, open, isThere } of kinds) {
  describe.skipIf(!isThere)(`storage on ${kind}`, () => {
    let folder: string
    let storage: Storage

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'sluice-storage-'))
      storage = await open(folder)
    })
    afterAll(() => rmSync(folder, { recursive: true, force: true }))

    test('a content is read back by its hash', async () => {
      await storage.ping()
      const content = patternOf(20_000_003)
      const stored = await storage.put(pieces(content, 65_537), limits)
      expect(stored.sha256).toBe(hashOf(content))
      expect(stored.bytes).toBe(content.length)
      expect(Buffer.from(stored.head).equals(content.subarray(0, 4_100))).toBe(true)
      expect(await storage.has(stored.sha256)).toBe(true)
      expect(hashOf(await bytesOf(await storage.read(stored.sha256)))).toBe(stored.sha256)
    })

    test('a range is read', async () => {
      const content = patternOf(300_000)
      const { sha256 } = await storage.put(pieces(content, 999), limits)
      for (const [start, end] of [
        [0, 1],
        [0, 300_000],
        [70_000, 200_001],
        [299_999, 300_000],
      ] as const) {
        const part = await bytesOf(await storage.read(sha256, { start, end }))
        expect(Buffer.from(part).equals(content.subarray(start, end))).toBe(true)
      }
    })

    test('an empty content can be stored', async () => {
      const stored = await storage.put(pieces(new Uint8Array(), 1), limits)
      expect(stored).toMatchObject({ bytes: 0, sha256: hashOf(new Uint8Array()) })
      expect(await storage.has(stored.sha256)).toBe(true)
    })

    test('concurrent equal contents are stored once, and a second removal succeeds', async () => {
      const content = patternOf(100_000)
      const puts = Array.from({ length: 8 }, () => storage.put(pieces(content, 4_096), limits))
      const hashes = new Set((await Promise.all(puts)).map(({ sha256 }) => sha256))
      expect([...hashes]).toEqual([hashOf(content)])
      await storage.remove(hashOf(content))
      await storage.remove(hashOf(content))
      expect(await storage.has(hashOf(content))).toBe(false)
    })

    test('a content that is too large or interrupted leaves nothing behind', async () => {
      const before = filesIn(folder)
      const long = storage.put(pieces(patternOf(5_000), 100), { bytesMax: 4_999 })
      expect(await kindOf(long)).toBe('request_too_large')
      expect(await kindOf(storage.put(breakingOff(), limits))).toBe('client_closed')
      expect(filesIn(folder)).toEqual(before)
    })

    test('a content is claimed before it is stored, and not stored without the claim', async () => {
      const content = patternOf(3_000)
      const before = filesIn(folder)
      const refuse = async () => {
        throw new AppError('service_unavailable', 'The database is unavailable.')
      }
      const refused = storage.put(pieces(content, 100), { ...limits, claim: refuse })
      expect(await kindOf(refused)).toBe('service_unavailable')
      expect(await storage.has(hashOf(content))).toBe(false)
      expect(filesIn(folder)).toEqual(before)
      const claimed: [string, boolean][] = []
      const claim = async ({ sha256 }: StoredContent) => {
        claimed.push([sha256, await storage.has(sha256)])
      }
      await storage.put(pieces(content, 100), { ...limits, claim })
      expect(claimed).toEqual([[hashOf(content), false]])
      expect(await storage.has(hashOf(content))).toBe(true)
    })

    test('what a killed process left unfinished is removed after a day', async () => {
      const before = filesIn(folder)
      const source = async function* () {
        yield patternOf(1_000)
        const unfinished = filesIn(folder)
        await storage.removeUnfinished(new Date(Date.now() + 23 * 3_600_000))
        expect(filesIn(folder)).toEqual(unfinished)
        expect(unfinished.length).toBeGreaterThan(before.length)
        await storage.removeUnfinished(new Date(Date.now() + 25 * 3_600_000))
        expect(filesIn(folder)).toEqual(before)
        throw new AppError('client_closed', 'The client disconnected.')
      }
      expect(await kindOf(storage.put(source(), limits))).toBe('client_closed')
    })

    test('a removed content is not found', async () => {
      expect(await kindOf(storage.read('0'.repeat(64)))).toBe('not_found')
    })
  })
}

async function* breakingOff(): AsyncGenerator<Uint8Array> {
  yield patternOf(1_000)
  throw new AppError('client_closed', 'The client disconnected.')
}

function kindOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'taken',
    (error) => toAppError(error).kind,
  )
}

function patternOf(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) >>> 0, at)
  return bytes
}

async function* pieces(content: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size)
}

async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  return new Response(stream).bytes()
}

function hashOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true }).map(String).toSorted()
}
