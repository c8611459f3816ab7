import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import {
  type Bench,
  contentOf,
  holds,
  isMonotone,
  openBench,
  remoteFile,
  sha256Of,
} from './transfer-fixture.ts'

let bench: Bench

beforeEach(async () => {
  bench = await openBench()
})
afterEach(() => bench.close())

test('a file is downloaded in ranges over several connections', async () => {
  const content = contentOf(1_000_003)
  const url = bench.origin.put('/model.gguf', content)
  const { file, progress, partPath } = await bench.transfer(remoteFile(url, content))
  expect(file).toEqual({ bytes: content.length, sha256: sha256Of(content), isVerified: true })
  expect(holds(partPath, content)).toBe(true)
  expect(progress.at(-1)).toBe(content.length)
  expect(isMonotone(progress)).toBe(true)
  const ranges = bench.origin.questions.map(({ headers }) => headers['range'])
  expect(ranges.toSorted()[0]).toBe('bytes=0-65535')
  expect(new Set(ranges).size).toBe(ranges.length)
  expect(ranges.length).toBeGreaterThanOrEqual(16)
})

test('no byte is downloaded twice', async () => {
  const content = contentOf(3_000_000)
  const url = bench.origin.put('/model.gguf', content)
  await bench.transfer(remoteFile(url, content))
  expect(bench.origin.bytesSent()).toBe(content.length)
})

test('a small file takes one request without ranges', async () => {
  const content = contentOf(5_000)
  const url = bench.origin.put('/config.json', content, { hasRanges: false, etag: null })
  const { file } = await bench.transfer(remoteFile(url, content))
  expect(file?.isVerified).toBe(true)
  expect(bench.origin.questions.map(({ headers }) => headers['range'])).toEqual([undefined])
})

test('an empty file is recognised by its length or by the source', async () => {
  const nothing = Buffer.alloc(0)
  const url = bench.origin.put('/empty.txt', nothing)
  const known = await bench.transfer(remoteFile(url, nothing))
  expect(known.file).toEqual({ bytes: 0, sha256: sha256Of(nothing), isVerified: true })
  expect(bench.origin.questions).toEqual([])
  const asked = await bench.transfer(remoteFile(url, nothing, { bytes: null, sha256: null }))
  expect(asked.file).toEqual({ bytes: 0, sha256: sha256Of(nothing), isVerified: false })
})

test('a file of unknown length and hash is downloaded as not verified', async () => {
  const content = contentOf(300_000)
  const url = bench.origin.put('/model.gguf', content)
  const unknown = remoteFile(url, content, { bytes: null, sha256: null })
  const { file, partPath } = await bench.transfer(unknown)
  expect(file).toEqual({ bytes: content.length, sha256: sha256Of(content), isVerified: false })
  expect(holds(partPath, content)).toBe(true)
})

test('the git hash verifies a file', async () => {
  const content = contentOf(5_000)
  const url = bench.origin.put('/config.json', content)
  const gitSha1 = createHash('sha1')
    .update(`blob ${content.length}\0`)
    .update(content)
    .digest('hex')
  const right = await bench.transfer(remoteFile(url, content, { sha256: null, gitSha1 }))
  expect(right.file).toEqual({
    bytes: content.length,
    sha256: sha256Of(content),
    isVerified: true,
  })
  const wrong = remoteFile(url, content, { sha256: null, gitSha1: '0'.repeat(40) })
  expect((await bench.transfer(wrong)).failure).toBe('hash_mismatch')
})

test('a server without ranges sends the whole file', async () => {
  const content = contentOf(400_000)
  const url = bench.origin.put('/model.gguf', content, { hasRanges: false })
  const { file, lines } = await bench.transfer(remoteFile(url, content))
  expect(file?.sha256).toBe(sha256Of(content))
  expect(lines.join()).toContain('Downloading the whole file')
  expect(bench.origin.questions).toHaveLength(2)
})

test('ranges without a validator are not combined', async () => {
  const content = contentOf(200_000)
  const url = bench.origin.put('/model.gguf', content, { etag: null })
  const unknown = remoteFile(url, content, { sha256: null })
  const { file } = await bench.transfer(unknown)
  expect(file?.sha256).toBe(sha256Of(content))
  expect(bench.origin.questions.at(-1)?.headers['range']).toBeUndefined()
})

test('the modification date validates ranges without an entity tag', async () => {
  const content = contentOf(200_000)
  const date = 'Mon, 20 Oct 2025 10:00:00 GMT'
  const headers = { 'last-modified': date }
  // A server that accepts a date in If-Range.
  const url = bench.origin.put('/model.gguf', content, { etag: date, headers })
  const { file } = await bench.transfer(remoteFile(url, content, { sha256: null }))
  expect(file?.sha256).toBe(sha256Of(content))
  const [, second] = bench.origin.questions
  expect(second?.headers['if-range']).toBe(date)
})

test('each range request starts at the original URL and follows redirects', async () => {
  const content = contentOf(200_000)
  const target = bench.origin.put('/moved', content)
  const redirect = { kind: 'status', status: 302, headers: { location: '/moved' } } as const
  bench.origin.alwaysMisbehave('/model.gguf', redirect)
  const url = target.replace('/moved', '/model.gguf')
  const { file } = await bench.transfer(remoteFile(url, content))
  expect(file?.isVerified).toBe(true)
  const named = bench.origin.questions.filter(({ path }) => path === '/model.gguf')
  expect(named).toHaveLength(bench.origin.questions.length / 2)
})

test('a complete part is only hashed', async () => {
  const content = contentOf(300_000)
  const url = bench.origin.put('/model.gguf', content)
  const named = remoteFile(url, content)
  await bench.transfer(named, { part: 'one' })
  const asked = bench.origin.questions.length
  const again = await bench.transfer(named, { part: 'one' })
  expect(again.file?.isVerified).toBe(true)
  expect(again.progress).toEqual([content.length])
  expect(bench.origin.questions).toHaveLength(asked)
})

test('idle connections take over the end of a slow range', async () => {
  const content = contentOf(6_000_000)
  const url = bench.origin.put('/model.gguf', content)
  const settings = { rangeBytes: 3_000_000, rangesMax: 2, stallMs: 400, attemptsMax: 2 }
  bench.origin.misbehave('/model.gguf', { kind: 'stall', afterBytes: 100_000 })
  const { file } = await bench.transfer(remoteFile(url, content), { settings })
  expect(file?.isVerified).toBe(true)
  // The first connection received less than it requested.
  const starts = bench.origin.questions.map(({ headers }) => headers['range']?.split('-')[0])
  expect(starts.some((start) => Number(start?.slice(6)) % 3_000_000 > 1_000_000)).toBe(true)
})
