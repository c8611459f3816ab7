import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '#test/support/eventually.ts'
import {
  errorCodeOf,
  ggufOf,
  type InstallerFixture,
  type InstallerWorker,
  startInstallerFixture,
} from './installer-fixture.ts'

let fixture: InstallerFixture
let worker: InstallerWorker

beforeAll(async () => {
  fixture = await startInstallerFixture()
  worker = await fixture.open()
})
afterAll(() => fixture.close())

const partial = (name: string) => join(fixture.folder, '.partial', name)

/** Starts a download and waits for some progress. */
async function begun(name: string): Promise<string> {
  const pace = { bytes: 40_000, everyMs: 10 }
  const model = fixture.origin.put(`/files/${name}.gguf`, ggufOf(8_000_000), { pace })
  const { download_id: id } = await worker.install({ model })
  await eventually('it has made progress', async () => {
    return (await worker.installer.downloads.find(String(id))).bytesCompleted > 0
  })
  return String(id)
}

test('expired downloads and their data are deleted', async () => {
  const over = await begun('over')
  await worker.send(`POST /downloads/${over}/cancel`)
  const paused = await begun('paused')
  await worker.send(`POST /downloads/${paused}/pause`)
  mkdirSync(partial('.removed-by-a-process-that-died'))
  const unfinished = join(fixture.folder, 'crashed', crypto.randomUUID())
  mkdirSync(unfinished, { recursive: true })
  writeFileSync(join(unfinished, 'model.gguf'), 'GGUF')
  expect((await worker.send(`GET /downloads/${over}`)).body['status']).toBe('cancelled')

  const sweeper = await fixture.open({ settings: { keepTerminalS: 0 }, isFrontWorker: true })
  await eventually('it is deleted', async () => {
    return (await worker.send(`GET /downloads/${over}`)).status === 404
  })
  await eventually('its data is deleted', () => !existsSync(partial('over')))
  await eventually('the unfinished version is deleted', () => !existsSync(unfinished))
  expect(existsSync(partial('.removed-by-a-process-that-died'))).toBe(false)
  expect(existsSync(partial('paused'))).toBe(true)
  expect(errorCodeOf(await sweeper.send(`POST /downloads/${over}/cancel`))).toBe('404 not_found')
  await worker.send(`DELETE /downloads/${paused}`)
})
