import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, statfsSync, writeFileSync } from 'node:fs'
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

/** Returns the path of its file. */
async function install(name: string, bytes = 100_000): Promise<string> {
  const content = ggufOf(bytes)
  const file = `${name.replace('/', '-')}.gguf`
  const model = fixture.origin.put(`/files/${file}`, content)
  const { download_id: id } = await worker.install({ model, name, sha256: sha256Of(content) })
  await worker.until(id, 'completed')
  return join(fixture.folder, encodeURIComponent(name), String(id), file)
}

test.each(['plain', 'org/with-slash'])(
  'deleting the model %s frees its disk space',
  async (name) => {
    const path = await install(name)
    const before = (await worker.send('GET /storage')).body
    const refreshed = fixture.frontWorker.refreshes()
    const { status, body } = await fixture.frontWorker.send(`DELETE /models/${name}`)
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { object: 'installed_model.deleted', name, deleted: true },
    })
    expect(Number(body['freed_bytes'])).toBeGreaterThanOrEqual(100_000)
    expect(existsSync(path)).toBe(false)
    const after = (await worker.send('GET /storage')).body
    expect(Number(before['used']) - Number(after['used'])).toBe(Number(body['freed_bytes']))
    await eventually('all workers are notified', () => fixture.frontWorker.refreshes() > refreshed)
    expect(errorCodeOf(await fixture.frontWorker.send(`DELETE /models/${name}`))).toBe(
      '404 not_found',
    )
  },
)

test('a name with a slash may be one segment of the path', async () => {
  await install('org/encoded')
  const verified = await worker.send('POST /models/org%2Fencoded/verify')
  expect(verified).toMatchObject({ status: 202, body: { task: 'verify', model: 'org/encoded' } })
  await worker.until(verified.body['download_id'], 'completed')
  expect((await worker.send('DELETE /models/org%2Fencoded')).status).toBe(200)
})

test('a model in use is not deleted, and the error names its users', async () => {
  const path = await install('used')
  fixture.uses.set('used', ['Two generations run with it.'])
  const { body } = await worker.send('GET /models')
  expect(body['data']).toContainEqual(
    expect.objectContaining({ name: 'used', in_use_by: ['Two generations run with it.'] }),
  )
  const refused = await worker.send('DELETE /models/used')
  expect(errorCodeOf(refused)).toBe('409 model_in_use')
  expect(Object(refused.body['error']).message).toContain('Two generations run with it.')
  expect(existsSync(path)).toBe(true)
  fixture.uses.delete('used')
  expect((await worker.send('DELETE /models/used')).status).toBe(200)
})

test('a model that is being replaced is not deleted', async () => {
  await install('replaced')
  const pace = { bytes: 20_000, everyMs: 10 }
  const url = fixture.origin.put('/files/replaced.gguf', ggufOf(8_000_000), { pace })
  const { download_id: id } = await worker.install({ model: url, name: 'replaced' })
  expect(errorCodeOf(await worker.send('DELETE /models/replaced'))).toBe('409 model_in_use')
  expect(errorCodeOf(await worker.send('POST /models/replaced/verify'))).toBe('409 download_active')
  await worker.send(`DELETE /downloads/${id}`)
})

test('a verification reports a changed file, and the model counts as not verified', async () => {
  const path = await install('checked', 300_000)
  const good = await worker.send('POST /models/checked/verify')
  expect(good).toMatchObject({ status: 202, body: { task: 'verify', status: 'queued' } })
  const ended = await worker.until(good.body['download_id'], 'completed')
  expect(ended).toMatchObject({ bytesTotal: 300_000, bytesCompleted: 300_000 })

  const damaged = await Bun.file(path).bytes()
  damaged[200_000] = 255 - (damaged[200_000] ?? 0)
  writeFileSync(path, damaged)
  const bad = await worker.send('POST /models/checked/verify')
  const { error } = await worker.until(bad.body['download_id'], 'failed')
  expect(error).toEqual({
    code: 'hash_mismatch',
    message: '"checked.gguf" has changed since its installation.',
  })
  const { body } = await worker.send('GET /models')
  expect(body['data']).toContainEqual(expect.objectContaining({ name: 'checked', verified: false }))
  expect(errorCodeOf(await worker.send('POST /models/absent/verify'))).toBe('404 not_found')
})

test('storage reports the disk, installed models and partial downloads', async () => {
  await install('stored', 200_000)
  const pace = { bytes: 40_000, everyMs: 10 }
  const url = fixture.origin.put('/files/partial.gguf', ggufOf(8_000_000), { pace })
  const { download_id: id } = await worker.install({ model: url })
  await eventually('it has made progress', async () => {
    return (await worker.installer.downloads.find(String(id))).bytesCompleted > 0
  })
  const { body } = await worker.send('GET /storage')
  const { blocks, bsize } = statfsSync(fixture.folder)
  expect(body).toMatchObject({ object: 'model_storage', total: blocks * bsize })
  expect(Number(body['used'])).toBeGreaterThanOrEqual(200_000)
  expect(Number(body['partials'])).toBeGreaterThan(0)
  await worker.send(`DELETE /downloads/${id}`)
  await eventually('its disk space is freed', async () => {
    return (await worker.send('GET /storage')).body['partials'] === 0
  })
})

test('foreign files in the folder are ignored and kept', async () => {
  mkdirSync(join(fixture.folder, 'of-somebody', 'deep'), { recursive: true })
  writeFileSync(join(fixture.folder, 'a-file'), 'text')
  writeFileSync(join(fixture.folder, 'of-somebody', 'model.json'), '{"name": "of-somebody"}')
  await install('beside')
  const next = await fixture.open()
  const names = (await next.installer.models.list()).map(({ name }) => name)
  expect(names).toContain('beside')
  expect(names).not.toContain('of-somebody')
  await next.close()
  expect(readdirSync(join(fixture.folder, 'of-somebody')).toSorted()).toEqual([
    'deep',
    'model.json',
  ])
})

test('a model that does not fit on the disk is rejected before its download', async () => {
  const tight = await fixture.open({ settings: { reserveBytes: Number.MAX_SAFE_INTEGER } })
  const url = fixture.origin.put('/files/large.gguf', ggufOf(1_000))
  expect(errorCodeOf(await tight.send('POST /downloads', { model: url }))).toBe(
    '507 insufficient_storage',
  )
  await tight.close()
})
