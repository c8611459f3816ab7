import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '#test/support/eventually.ts'
import {
  errorCodeOf,
  ggufOf,
  type InstallerFixture,
  type InstallerWorker,
  sha256Of,
  startInstallerFixture,
} from './installer-fixture.ts'

let fixture: InstallerFixture
let worker: InstallerWorker

beforeAll(async () => {
  fixture = await startInstallerFixture()
  worker = await fixture.open()
})
afterAll(() => fixture.close())

/** The bytes of the files of an installed model. */
async function bytesOf(name: string): Promise<Uint8Array[]> {
  const { models } = worker.installer
  const model = (await models.list()).find((one) => one.name === name)
  if (model === undefined) throw new Error(`there is no ${name}`)
  return Promise.all(model.files.map((file) => Bun.file(models.pathOf(model, file)).bytes()))
}

test('a model is installed from a URL, verified and listed, and all workers are notified', async () => {
  const content = ggufOf(3_000_000)
  const url = fixture.origin.put('/files/first.gguf', content)
  const refreshed = fixture.frontWorker.refreshes()
  const started = await worker.install({ model: url, sha256: sha256Of(content).toUpperCase() })
  expect(started).toMatchObject({
    object: 'model_download',
    task: 'install',
    model: 'first',
    status: 'queued',
    source: `url:${url}`,
    bytes_total: content.length,
    bytes_completed: 0,
    error: null,
  })
  const ended = await worker.until(started['download_id'], 'completed')
  expect(ended).toMatchObject({
    bytesTotal: content.length,
    bytesCompleted: content.length,
    attempts: 1,
    error: null,
    files: [{ path: 'first.gguf', bytesCompleted: content.length, status: 'completed' }],
  })
  expect(await bytesOf('first')).toEqual([content])
  const { body } = await fixture.frontWorker.send('GET /models')
  expect(body['data']).toContainEqual(
    expect.objectContaining({
      object: 'installed_model',
      name: 'first',
      bytes: content.length,
      verified: true,
      sha256: sha256Of(content),
      in_use_by: [],
    }),
  )
  await eventually(
    'the front worker was notified',
    () => fixture.frontWorker.refreshes() > refreshed,
  )
  expect(existsSync(join(fixture.folder, '.partial', 'first'))).toBe(false)
})

test('a model without a hash is installed as not verified', async () => {
  const url = fixture.origin.put('/files/unknown.gguf', ggufOf(1_000))
  const { download_id: id } = await worker.install({ model: url })
  await worker.until(id, 'completed')
  const { body } = await worker.send('GET /models')
  expect(body['data']).toContainEqual(expect.objectContaining({ name: 'unknown', verified: false }))
})

test('a current model is not downloaded again', async () => {
  const content = ggufOf(1_000)
  const request = {
    model: fixture.origin.put('/files/same.gguf', content),
    sha256: sha256Of(content),
  }
  await worker.until((await worker.install(request))['download_id'], 'completed')
  const again = await worker.send('POST /downloads', request)
  expect(again.status).toBe(200)
  expect(again.body).toMatchObject({ status: 'already_installed', model: { name: 'same' } })
})

test('a new revision replaces the old one when it is complete', async () => {
  const [old, fresh] = [ggufOf(50_000), ggufOf(8_000_000)]
  const url = fixture.origin.put('/files/moving.gguf', old)
  await worker.until((await worker.install({ model: url }))['download_id'], 'completed')
  fixture.origin.put('/files/moving.gguf', fresh, { pace: { bytes: 20_000, everyMs: 10 } })
  const { download_id: id } = await worker.install({ model: url })
  await eventually('the new revision is being downloaded', async () => {
    return (await worker.installer.downloads.find(String(id))).bytesCompleted > 0
  })
  expect((await bytesOf('moving')).map(sha256Of)).toEqual([sha256Of(old)])
  await worker.until(id, 'completed')
  expect((await bytesOf('moving')).map(sha256Of)).toEqual([sha256Of(fresh)])
  const versions = readdirSync(join(fixture.folder, 'moving')).toSorted()
  expect(versions).toEqual([String(id), 'model.json'])
})

test('a second start returns the active download; another source is rejected', async () => {
  const content = ggufOf(4_000_000)
  const request = {
    model: fixture.origin.put('/files/slow.gguf', content),
    sha256: sha256Of(content),
  }
  fixture.origin.put('/files/slow.gguf', content, { pace: { bytes: 20_000, everyMs: 10 } })
  const starts = await Promise.all([1, 2, 3].map(() => worker.send('POST /downloads', request)))
  expect(starts.map(({ status }) => status).toSorted()).toEqual([200, 200, 202])
  expect(new Set(starts.map(({ body }) => body['download_id'])).size).toBe(1)
  const other = { model: fixture.origin.put('/files/other.gguf', content), name: 'slow' }
  expect(errorCodeOf(await worker.send('POST /downloads', other))).toBe('409 download_active')
  await worker.until(starts[0]?.body['download_id'], 'completed')
  expect(errorCodeOf(await worker.send('POST /downloads', other))).toBe('409 name_taken')
})

test.each([
  ['/files/fake.gguf', 'GGXF and so on'],
  ['/files/fake.safetensors', '\xff\xff\xff\xff\xff\xff\xff\xff{}'],
  ['/files/short.safetensors', '\x02\0\0'],
  ['/files/open.safetensors', '\x04\0\0\0\0\0\0\0{"a"'],
])('%s, which is not what its name says, is refused and kept nowhere', async (path, text) => {
  const url = fixture.origin.put(path, Buffer.from(text, 'latin1'))
  const { download_id: id, model } = await worker.install({ model: url })
  const { error } = await worker.until(id, 'failed')
  expect(error?.code).toBe('invalid_file')
  expect(await worker.installer.models.list()).not.toContainEqual(
    expect.objectContaining({ name: model }),
  )
  const partial = join(fixture.folder, '.partial', String(model))
  expect(readdirSync(partial)).toEqual([])
})

test('a safetensors file with a header is valid', async () => {
  const header = Buffer.from('{"__metadata__":{}}     ')
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  const url = fixture.origin.put('/files/good.safetensors', Buffer.concat([length, header]))
  const { download_id: id } = await worker.install({ model: url })
  await worker.until(id, 'completed')
})
