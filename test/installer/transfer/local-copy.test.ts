import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RemoteFile } from '#installer/sources/source.ts'
import {
  type Bench,
  contentOf,
  holds,
  isMonotone,
  openBench,
  sha256Of,
} from './transfer-fixture.ts'

const content = contentOf(3_000_000)
let bench: Bench
let models: string
let file: RemoteFile

beforeEach(async () => {
  bench = await openBench()
  models = join(bench.folder, 'models')
  mkdirSync(models)
  const localPath = join(models, 'model.gguf')
  writeFileSync(localPath, content)
  file = { path: 'model.gguf', bytes: content.length, sha256: null, from: { localPath } }
})
afterEach(() => bench.close())

const settings = () => ({ localFolders: [models] })

test('a local file is copied and hashed', async () => {
  const copied = await bench.transfer(file, { settings: settings() })
  const { length: bytes } = content
  expect(copied.file).toEqual({ bytes, sha256: sha256Of(content), isVerified: false })
  expect(holds(copied.partPath, content)).toBe(true)
  expect(isMonotone(copied.progress)).toBe(true)
  expect(copied.progress.at(-1)).toBe(bytes)
})

test('an empty file is copied', async () => {
  const localPath = join(models, 'empty.txt')
  writeFileSync(localPath, '')
  const empty: RemoteFile = { ...file, bytes: 0, from: { localPath } }
  const { file: copied } = await bench.transfer(empty, { settings: settings() })
  expect(copied?.bytes).toBe(0)
})

test('an aborted copy resumes unless the file has changed', async () => {
  const abort = new AbortController()
  const reason = new Error('aborted')
  const more = { settings: settings(), part: 'one', signal: abort.signal }
  const work = bench.transfer(file, more)
  abort.abort(reason)
  await expect(work).rejects.toBe(reason)
  appendFileSync(join(models, 'model.gguf'), 'more')
  const grown = Buffer.concat([content, Buffer.from('more')])
  const again = { settings: settings(), part: 'one' }
  const { file: copied, partPath } = await bench.transfer({ ...file, bytes: null }, again)
  expect(copied?.sha256).toBe(sha256Of(grown))
  expect(holds(partPath, grown)).toBe(true)
  expect((await bench.transfer(file, { settings: settings() })).failure).toBe('source_changed')
})

test('a file replaced by a link out of the folder is not copied', async () => {
  const secret = join(bench.folder, 'secret.gguf')
  writeFileSync(secret, content)
  rmSync(join(models, 'model.gguf'))
  symlinkSync(secret, join(models, 'model.gguf'))
  const { failure } = await bench.transfer(file, { settings: settings() })
  expect(failure).toBe('host_not_allowed')
})

test('missing files and non-files are reported', async () => {
  rmSync(join(models, 'model.gguf'))
  expect((await bench.transfer(file, { settings: settings() })).failure).toBe('not_found')
  mkdirSync(join(models, 'model.gguf'))
  expect((await bench.transfer(file, { settings: settings() })).failure).toBe('bad_source')
})
