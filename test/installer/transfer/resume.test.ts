import { afterEach, beforeEach, expect, test } from 'bun:test'
import { linkSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RemoteFile } from '#installer/sources/source.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  type Bench,
  contentOf,
  holds,
  isMonotone,
  openBench,
  remoteFile,
  sha256Of,
  transferSettings,
} from './transfer-fixture.ts'

const program = join(import.meta.dir, '../../support/transfer-process/program.ts')
const content = contentOf(2_000_000)
let bench: Bench
let url: string

beforeEach(async () => {
  bench = await openBench()
  url = bench.origin.put('/model.gguf', content)
})
afterEach(() => bench.close())

/** Transfers a large part of a file and aborts. */
async function begin(file: RemoteFile): Promise<void> {
  bench.origin.alwaysMisbehave('/model.gguf', { kind: 'cut', afterBytes: 40_000 })
  const abort = new AbortController()
  const reason = new Error('aborted')
  const settings = { backoffMs: 50, rangeBytes: 1_000_000, attemptsMax: 1_000 }
  const work = bench.transfer(file, { part: 'one', signal: abort.signal, settings })
  const part = join(bench.folder, 'one')
  const size = () => statSync(part, { throwIfNoEntry: false })?.size ?? 0
  await eventually('a large part is written', () => size() > 100_000)
  abort.abort(reason)
  await expect(work).rejects.toBe(reason)
  bench.origin.alwaysMisbehave('/model.gguf', { kind: 'headers', headers: {} })
}

const stateOf = (part: string) => join(bench.folder, `${part}.state`)
const readState = (part: string) => parseJson(readFileSync(stateOf(part), 'utf8'))

function doneBytes(state: unknown): number {
  const done: [number, number][] = isRecord(state) ? (state['done'] as [number, number][]) : []
  return done.reduce((sum, [start, end]) => sum + end - start, 0)
}

test('an aborted transfer resumes with its progress', async () => {
  const file = remoteFile(url, content)
  await begin(file)
  const saved = doneBytes(readState('one'))
  expect(saved).toBeGreaterThan(30_000)
  const before = bench.origin.bytesSent()
  const { file: done, progress, partPath } = await bench.transfer(file, { part: 'one' })
  expect(done?.isVerified).toBe(true)
  expect(holds(partPath, content)).toBe(true)
  expect(progress[0]).toBe(saved)
  expect(isMonotone(progress)).toBe(true)
  expect(bench.origin.bytesSent() - before).toBe(content.length - saved)
})

test('an abort rejects at once with its reason and closes all connections', async () => {
  bench.origin.alwaysMisbehave('/model.gguf', { kind: 'stall', afterBytes: 30_000 })
  const abort = new AbortController()
  const reason = new Error('aborted')
  const work = bench.transfer(remoteFile(url, content), { signal: abort.signal })
  await eventually('the server received requests', () => bench.origin.questions.length >= 4)
  abort.abort(reason)
  await expect(work).rejects.toBe(reason)
  await eventually('the connections are closed', () => bench.origin.openConnections() === 0)
  await expect(bench.transfer(remoteFile(url, content), { signal: abort.signal })).rejects.toBe(
    reason,
  )
})

test('the data of another file is discarded', async () => {
  await begin(remoteFile(url, content))
  const other = contentOf(2_000_000, 2)
  const otherUrl = bench.origin.put('/other.gguf', other)
  const { file, partPath } = await bench.transfer(remoteFile(otherUrl, other), { part: 'one' })
  expect(file?.sha256).toBe(sha256Of(other))
  expect(holds(partPath, other)).toBe(true)
})

test('a new version at the source is downloaded from its beginning', async () => {
  const unknown = remoteFile(url, content, { sha256: null })
  await begin(unknown)
  const other = contentOf(2_000_000, 2)
  bench.origin.put('/model.gguf', other)
  const { file, lines } = await bench.transfer(unknown, { part: 'one' })
  expect(file?.sha256).toBe(sha256Of(other))
  expect(lines.join()).toContain('has changed at the source')
})

test('a changed validator is ignored if the hash is known', async () => {
  const file = remoteFile(url, content)
  await begin(file)
  const saved = doneBytes(readState('one'))
  bench.origin.put('/model.gguf', content, { etag: '"another"' })
  const before = bench.origin.bytesSent()
  const { file: done, lines } = await bench.transfer(file, { part: 'one' })
  expect(done?.isVerified).toBe(true)
  expect(lines).toEqual([])
  expect(bench.origin.bytesSent() - before).toBe(content.length - saved)
})

for (const [what, spoil] of [
  ['is no JSON', (path: string) => writeFileSync(path, '{"version":1,"do')],
  ['is of another form', (path: string) => writeFileSync(path, '{"version":2}')],
  [
    'has spans that are none',
    (path: string) =>
      writeFileSync(
        path,
        JSON.stringify({
          version: 1,
          validator: null,
          bytes: content.length,
          sha256: null,
          done: [[0, -5]],
        }),
      ),
  ],
  [
    'has more than the file',
    (path: string) =>
      writeFileSync(
        path,
        JSON.stringify({
          version: 1,
          validator: null,
          bytes: 10,
          sha256: null,
          done: [[0, 500]],
        }),
      ),
  ],
  ['is longer than any', (path: string) => writeFileSync(path, ' '.repeat(2_000_000))],
] as const) {
  test(`a state that ${what} is ignored`, async () => {
    const file = remoteFile(url, content)
    await begin(file)
    spoil(stateOf('one'))
    const before = bench.origin.bytesSent()
    const { file: done, progress } = await bench.transfer(file, { part: 'one' })
    expect(done?.isVerified).toBe(true)
    expect(progress).not.toContain(0)
    expect(bench.origin.bytesSent() - before).toBe(content.length)
  })
}

test('bytes that the disk lost are downloaded again', async () => {
  const file = remoteFile(url, content)
  await begin(file)
  truncateSync(join(bench.folder, 'one'), 20_000)
  const { file: done, progress } = await bench.transfer(file, { part: 'one' })
  expect(done?.isVerified).toBe(true)
  expect(progress[0]).toBeLessThanOrEqual(20_000)
})

test('a part that is a link is not written through', async () => {
  const installed = join(bench.folder, 'installed')
  const other = contentOf(1_000, 2)
  writeFileSync(installed, other)
  linkSync(installed, join(bench.folder, 'one'))
  const { file } = await bench.transfer(remoteFile(url, content), { part: 'one' })
  expect(file?.isVerified).toBe(true)
  expect(holds(installed, other)).toBe(true)
})

/** A transfer in another process, and its output lines. */
function launch(file: RemoteFile, limit = '') {
  const settings = { ...transferSettings, rangeBytes: 300_000, backoffMs: 10 }
  const partPath = join(bench.folder, 'killed')
  const job = JSON.stringify({ file, partPath, settings })
  const command = `${limit} exec "$0" "$@"`
  const child = Bun.spawn(['bash', '-c', command, process.execPath, program, job], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines: { bytes?: number; file?: unknown; failure?: string }[] = []
  const read = async () => {
    let text = ''
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const parts = (text + chunk).split('\n')
      text = parts.pop() ?? ''
      lines.push(...parts.map((line) => JSON.parse(line)))
    }
  }
  const ended = Promise.all([read(), child.exited])
  return { lines, ended, kill: () => child.kill('SIGKILL'), progress: () => bytesOf(lines) }
}

function bytesOf(lines: readonly { bytes?: number }[]): number[] {
  return lines.flatMap(({ bytes }) => (bytes === undefined ? [] : [bytes]))
}

test('a process that is killed repeatedly keeps all reported progress', async () => {
  const pace = { bytes: 5_000, everyMs: 100 }
  bench.origin.put('/model.gguf', content, { pace })
  const file = remoteFile(url, content)
  let reported = 0
  for (let kills = 0; kills < 3; kills++) {
    const child = launch(file)
    await eventually('it has made progress', () => (child.progress().at(-1) ?? 0) > reported)
    child.kill()
    await child.ended
    expect(child.progress()[0] ?? 0).toBeGreaterThanOrEqual(reported)
    reported = child.progress().at(-1) ?? 0
  }
  expect(reported).toBeLessThan(content.length)
  bench.origin.put('/model.gguf', content)
  const { file: done, progress, partPath } = await bench.transfer(file, { part: 'killed' })
  expect(progress[0]).toBeGreaterThanOrEqual(reported)
  expect(done).toEqual({ bytes: content.length, sha256: sha256Of(content), isVerified: true })
  expect(holds(partPath, content)).toBe(true)
})

test('a full disk is reported, and the written data is kept', async () => {
  const file = remoteFile(url, content)
  // A file size limit; SIGXFSZ would kill the process before the error is reported.
  const child = launch(file, "trap '' XFSZ; ulimit -f 1000;")
  await child.ended
  expect(child.lines.at(-1)).toEqual({ failure: 'insufficient_storage' })
  const saved = doneBytes(readState('killed'))
  expect(saved).toBeGreaterThan(300_000)
  const before = bench.origin.bytesSent()
  const { file: done } = await bench.transfer(file, { part: 'killed' })
  expect(done?.isVerified).toBe(true)
  expect(bench.origin.bytesSent() - before).toBe(content.length - saved)
})
