import { afterEach, beforeEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import type { Fault } from '#test/support/origin-answers.ts'
import {
  type Bench,
  contentOf,
  holds,
  isMonotone,
  openBench,
  remoteFile,
  sha256Of,
  type TransferMore,
} from './transfer-fixture.ts'

const content = contentOf(500_000)
const oneConnection = { settings: { rangesMax: 1 } }
/** Several cuts, because bytes right before a cut may be lost. */
const cuts = Array.from({ length: 3 }, () => ({ kind: 'cut', afterBytes: 10_000 }) as const)
let bench: Bench
let url: string

beforeEach(async () => {
  bench = await openBench()
  url = bench.origin.put('/model.gguf', content)
})
afterEach(() => bench.close())

const misbehave = (...faults: Fault[]) => bench.origin.misbehave('/model.gguf', ...faults)
const always = (fault: Fault) => bench.origin.alwaysMisbehave('/model.gguf', fault)
const known = () => remoteFile(url, content)
const unknown = () => remoteFile(url, content, { sha256: null })

function startOf(range: string | undefined): number {
  return Number(/^bytes=(\d+)-/.exec(range ?? '')?.[1] ?? 0)
}

async function arrives(more: TransferMore = {}, file = known()) {
  const transferred = await bench.transfer(file, more)
  expect(transferred.failure).toBe('')
  expect(transferred.file?.sha256).toBe(sha256Of(content))
  expect(holds(transferred.partPath, content)).toBe(true)
  expect(isMonotone(transferred.progress)).toBe(true)
  return transferred
}

async function failureOf(more: TransferMore = {}, file = known()): Promise<string> {
  const { failure, progress } = await bench.transfer(file, more)
  expect(isMonotone(progress)).toBe(true)
  return failure
}

for (const [name, more] of [
  ['one connection', oneConnection],
  ['several connections', {}],
] as const) {
  test(`ten broken connections are resumed, over ${name}`, async () => {
    misbehave(...Array.from({ length: 10 }, () => ({ kind: 'cut', afterBytes: 30_001 }) as const))
    await arrives(more)
    const starts = bench.origin.questions.map(({ headers }) => startOf(headers['range']))
    expect(starts.at(-1)).toBeGreaterThan(5 * 30_001)
    expect(bench.origin.bytesSent()).toBeLessThan(content.length + 5 * 30_001)
  })
}

test('closed connections are retried, up to the limit', async () => {
  misbehave({ kind: 'dropped' }, { kind: 'dropped' }, { kind: 'dropped' })
  await arrives()
  always({ kind: 'dropped' })
  expect(await failureOf()).toBe('upstream_unreachable')
  await eventually('no connection is open', () => bench.origin.openConnections() === 0)
})

test('a wrong hash causes one more download', async () => {
  misbehave({ kind: 'flipped', at: 100 })
  const { lines } = await arrives()
  expect(lines.join()).toContain('hash')
  always({ kind: 'flipped', at: 100 })
  expect(await failureOf()).toBe('hash_mismatch')
})

test('a wrong length causes one more download', async () => {
  const longer = remoteFile(url, content, { bytes: content.length + 1 })
  expect(await failureOf({}, longer)).toBe('length_mismatch')
  expect(bench.origin.questions).toHaveLength(2)
  const shorter = remoteFile(url, content, { bytes: 1_000, sha256: null })
  expect(await failureOf({}, shorter)).toBe('length_mismatch')
})

test('a temporary lack of range support is retried', async () => {
  misbehave({ kind: 'cut', afterBytes: 10_000 }, { kind: 'whole' }, { kind: 'whole' })
  const { lines } = await arrives(oneConnection, remoteFile(url, content, { bytes: null }))
  expect(lines.join()).toContain('does not support ranges')
  expect(lines.join()).not.toContain('Downloading the whole file')
})

test('a permanent lack of range support falls back to the whole file', async () => {
  misbehave(...cuts)
  always({ kind: 'whole' })
  const { lines } = await arrives(oneConnection)
  expect(lines.join()).toContain('Downloading the whole file')
})

test('a server without ranges may break connections as long as it makes progress', async () => {
  const lengths = [10_000, 20_000, 20_000, 300_000, 300_000, 450_000]
  misbehave(
    { kind: 'whole' },
    ...lengths.map((afterBytes) => ({ kind: 'cut', afterBytes }) as const),
  )
  always({ kind: 'whole' })
  await arrives()
  always({ kind: 'cut', afterBytes: 1_000 })
  bench.origin.put('/model.gguf', content, { hasRanges: false })
  expect(await failureOf()).toBe('server_error')
})

test('a file that changes is downloaded from its beginning', async () => {
  const before = contentOf(500_000, 2)
  bench.origin.put('/model.gguf', before)
  misbehave(...cuts, { kind: 'replaced', content })
  const { lines, file } = await arrives(oneConnection, unknown())
  expect(lines.join()).toContain('has changed at the source')
  expect(file?.isVerified).toBe(false)
})

test('a file that keeps changing fails, unless its hash is known', async () => {
  bench.origin.put('/model.gguf', content, { etag: null })
  const tags = Array.from({ length: 40 }, (_, index): Fault => {
    return { kind: 'headers', headers: { etag: `"${index}"` } }
  })
  misbehave(...tags)
  expect(await failureOf({}, unknown())).toBe('source_changed')
  misbehave(...tags)
  await arrives()
})

test('a redirect to a private address is rejected at every step', async () => {
  const settings = { privateHosts: false, hosts: ['*'] }
  expect(await failureOf({ settings })).toBe('host_not_allowed')
  expect(bench.origin.questions).toHaveLength(0)
  for (const location of [
    'http://169.254.169.254/latest/meta-data',
    'http://[fd00:ec2::254]/',
    'https://elsewhere.invalid.test/model.gguf',
    `http://user:password@127.0.0.1:${bench.origin.port}/model.gguf`,
  ]) {
    misbehave({ kind: 'status', status: 302, headers: { location } })
    expect(await failureOf()).toBe('host_not_allowed')
  }
})

test('endless and invalid redirects fail', async () => {
  const again = { kind: 'status', status: 307, headers: { location: '/model.gguf' } } as const
  always(again)
  expect(await failureOf()).toBe('upstream_invalid_answer')
  for (const headers of [{}, { location: 'http://' }]) {
    always({ kind: 'status', status: 301, headers })
    expect(await failureOf()).toBe('upstream_invalid_answer')
  }
})

test('an endless body is cut at the length of the file', async () => {
  always({ kind: 'endless' })
  await arrives()
  await arrives({ settings: { rangesMax: 1, rangeBytes: 1_000_000 } })
  expect(await failureOf({}, unknown())).toBe('length_mismatch')
})

test('an endless body without a length is cut at the size limit', async () => {
  const endless = remoteFile(url, content, { bytes: null, sha256: null })
  always({ kind: 'endless' })
  bench.origin.put('/model.gguf', content, { hasRanges: false })
  const settings = { fileBytesMax: 900_000 }
  expect(await failureOf({ settings }, endless)).toBe('file_too_large')
  bench.origin.put('/model.gguf', contentOf(900_001))
  always({ kind: 'chunked' })
  expect(await failureOf({ settings }, endless)).toBe('file_too_large')
})

test('excess bytes are discarded', async () => {
  always({ kind: 'excess', bytes: 1 })
  expect(await failureOf({}, unknown())).toBe('length_mismatch')
  await arrives()
})

test('a truncated body is resumed', async () => {
  misbehave({ kind: 'short', bytes: 1_000 }, { kind: 'short', bytes: 0 })
  await arrives({}, unknown())
})

test('a chunked body without a length is complete at its end', async () => {
  always({ kind: 'chunked' })
  await arrives({}, unknown())
  bench.origin.put('/model.gguf', content, { hasRanges: false })
  await arrives({}, remoteFile(url, content, { bytes: null, sha256: null }))
})

test('a silent connection is retried', async () => {
  misbehave({ kind: 'stall', afterBytes: 10_000 }, { kind: 'stall', afterBytes: 0 })
  await arrives({ settings: { stallMs: 50, rangesMax: 1 } })
  always({ kind: 'stall', afterBytes: 0 })
  expect(await failureOf({ settings: { stallMs: 20 } })).toBe('upstream_gap_timeout')
  always({ kind: 'stall', afterBytes: -1 })
  const failure = await failureOf({ settings: { answerMs: 20 } })
  expect(failure).toBe('upstream_first_event_timeout')
})

test('a trickling connection counts as silent', async () => {
  always({ kind: 'trickle', everyMs: 2 })
  const settings = { stallMs: 60, attemptsMax: 3 }
  expect(await failureOf({ settings })).toBe('upstream_gap_timeout')
})

test('Retry-After of an overloaded server is respected', async () => {
  const busy = { kind: 'status', status: 429, headers: { 'retry-after': '0' } } as const
  misbehave(busy, { ...busy, status: 503 }, busy)
  await arrives()
  misbehave({ ...busy, headers: { 'retry-after': '1' } })
  const begunAt = performance.now()
  await arrives(oneConnection)
  expect(performance.now() - begunAt).toBeGreaterThanOrEqual(1_000)
  always(busy)
  expect(await failureOf()).toBe('upstream_overloaded')
})

test('an overloaded server gets fewer connections', async () => {
  const honest = { kind: 'headers', headers: {} } as const
  const busy = { kind: 'status', status: 429 } as const
  misbehave(honest, busy, busy, busy)
  const { lines } = await arrives()
  expect(lines).toEqual([])
})

test('an unsatisfiable range falls back to the whole file', async () => {
  always({ kind: 'status', status: 416, headers: { 'content-range': 'bytes */500000' } })
  expect(await failureOf()).toBe('upstream_refused')
  bench.origin.alwaysMisbehave('/model.gguf', { kind: 'headers', headers: {} })
  misbehave({ kind: 'status', status: 416 })
  await arrives()
})

test('a compressed file is rejected', async () => {
  misbehave({ kind: 'gzip' })
  await arrives()
  always({ kind: 'gzip' })
  expect(await failureOf()).toBe('upstream_invalid_answer')
})

for (const range of [
  'bytes 1-65536/500000',
  'bytes 0-65536/500000',
  'bytes 0-65534/500000',
  'bytes 0-65535/60000',
  'bytes 0-65535/*',
  'bytes 65535-0/500000',
  'lines 0-65535/500000',
  null,
]) {
  test(`the content range ${range} falls back to the whole file`, async () => {
    misbehave({ kind: 'headers', headers: { 'content-range': range } })
    await arrives({}, range?.endsWith('*') ? remoteFile(url, content, { bytes: null }) : known())
    expect(bench.origin.questions.at(-1)?.headers['range']).toBeUndefined()
  })
}
