import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderDownload } from '#installer/record.ts'
import { type HubFiles, publishModel } from '#test/support/model-hub.ts'
import {
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

/** Replaces the files of a repository by a new commit; returns the commit. */
const publish = (name: string, files: HubFiles) => publishModel(fixture.origin, name, files)

const small = Buffer.from('{}')

/** The paths of the files fetched since. */
function fetched(since: number): string[] {
  const gets = fixture.origin.questions.slice(since).filter(({ method }) => method === 'GET')
  const paths = gets.map(({ path }) => path).filter((path) => path.includes('/resolve/'))
  return [...new Set(paths.map((path) => path.slice(path.lastIndexOf('/') + 1)))].toSorted()
}

test('a new revision downloads only changed files', async () => {
  const weights = ggufOf(300_000)
  const first = publish('org/moving', { 'weights.gguf': weights, 'config.json': small })
  const { download_id: id } = await worker.install({ model: 'org/moving' })
  const done = await worker.until(id, 'completed')
  expect(renderDownload(done)).toMatchObject({ revision: first, source: 'hub:org/moving@main' })
  const again = await worker.send('POST /downloads', { model: 'org/moving' })
  expect(again.body).toMatchObject({ status: 'already_installed', model: { revision: first } })

  const second = publish('org/moving', {
    'weights.gguf': weights,
    'config.json': Buffer.from('{"new": true}'),
    'readme.md': Buffer.from('words'),
  })
  const since = fixture.origin.questions.length
  const next = await worker.install({ model: 'org/moving' })
  expect((await worker.until(next['download_id'], 'completed')).revision).toBe(second)
  expect(fetched(since)).toEqual(['config.json', 'readme.md'])
  const { body } = await worker.send('GET /models')
  expect(body['data']).toEqual([
    expect.objectContaining({ name: 'org/moving', revision: second, verified: true, sha256: null }),
  ])
})

test('a damaged model is downloaded again', async () => {
  const weights = ggufOf(300_000)
  publish('org/damaged', { 'weights.gguf': weights })
  const { download_id: id } = await worker.install({ model: 'org/damaged' })
  await worker.until(id, 'completed')
  const path = join(fixture.folder, 'org%2Fdamaged', String(id), 'weights.gguf')
  writeFileSync(path, ggufOf(300_000))
  const check = await worker.send('POST /models/org/damaged/verify')
  await worker.until(check.body['download_id'], 'failed')
  const next = await worker.install({ model: 'org/damaged' })
  await worker.until(next['download_id'], 'completed')
  const healed = join(fixture.folder, 'org%2Fdamaged', String(next['download_id']), 'weights.gguf')
  expect(sha256Of(await Bun.file(healed).bytes())).toBe(sha256Of(weights))
})

test('a file with another hash than the hub published is not installed', async () => {
  const commit = publish('org/wrong', { 'weights.gguf': ggufOf(10_000) })
  fixture.origin.put(`/org/wrong/resolve/${commit}/weights.gguf`, ggufOf(10_000))
  const { download_id: id } = await worker.install({ model: 'org/wrong' })
  expect((await worker.until(id, 'failed')).error?.code).toBe('hash_mismatch')
  const names = (await worker.installer.models.list()).map(({ name }) => name)
  expect(names).not.toContain('org/wrong')
})
