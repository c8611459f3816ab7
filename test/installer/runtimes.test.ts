import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { loadConfig } from '#config/load.ts'
import { installRuntime } from '#install-packages.ts'
import { localRuntime } from '#local-runtimes.ts'
import { runtimePackages } from '#speech/engines/local/package.ts'
import { eventually } from '#test/support/eventually.ts'
import { startPackageRegistry } from '#test/support/package-registry.ts'
import {
  errorCodeOf,
  type InstallerFixture,
  type InstallerWorker,
  startInstallerFixture,
} from './installer-fixture.ts'

/** Installing runtimes through the API, from a package registry on this machine. */

const registryVariable = 'NPM_CONFIG_REGISTRY'
const registryBefore = process.env[registryVariable]
const { platform, arch } = process
let registry: ReturnType<typeof startPackageRegistry>
let fixture: InstallerFixture
let worker: InstallerWorker

beforeAll(async () => {
  registry = startPackageRegistry()
  process.env[registryVariable] = registry.url
  fixture = await startInstallerFixture()
  worker = await fixture.open()
})

beforeEach(async () => {
  registry.release()
  registry.publish(runtimePackages({ platform, arch }))
  await rm(folder(), { recursive: true, force: true })
})

afterAll(async () => {
  registry.release()
  await fixture.close()
  await registry.stop()
  if (registryBefore === undefined) delete process.env[registryVariable]
  else process.env[registryVariable] = registryBefore
})

const folder = () => join(fixture.folder, 'sherpa')
const install = 'POST /runtimes/speech/install'

async function speech(): Promise<Record<string, unknown>> {
  const { body } = await worker.send('GET /runtimes')
  const listed = body['data'] as Record<string, unknown>[]
  return listed.find(({ name }) => name === 'speech') ?? {}
}

async function messages(id: unknown): Promise<string> {
  const { body } = await worker.send(`GET /downloads/${id}/logs`)
  return (body['data'] as { message: string }[]).map(({ message }) => message).join('\n')
}

test('a runtime is listed with its package, size, licence and default model', async () => {
  expect(await speech()).toMatchObject({
    state: 'missing',
    purpose: 'speech recognition',
    package: 'sherpa-onnx-node',
    installed_version: null,
    license: 'Apache-2.0',
    bytes: 33_000_000,
    command: 'bun run speech:install',
    download_id: null,
    default_model: { model: 'csukuangfj/sherpa-onnx-whisper-base', installed: false },
  })
})

test('a runtime is installed like a model, with progress, log and audit entry', async () => {
  const refreshed = worker.refreshes()
  registry.hold()
  const { status, body } = await worker.send(install)
  expect(status).toBe(202)
  const { download_id: id, version } = { ...body, ...(await speech()) } as Record<string, unknown>
  expect(body).toMatchObject({ task: 'runtime', model: 'runtime:speech', bytes_total: 33_000_000 })
  expect((await speech())['download_id']).toBe(id)
  expect((await worker.send(install)).body['download_id']).toBe(id)
  await eventually('the log names the packages', async () =>
    (await messages(id)).includes(`Installing sherpa-onnx-node@${version}`),
  )
  registry.release()
  const { bytesCompleted } = await worker.until(id, 'completed')
  expect(bytesCompleted).toBe(33_000_000)
  await eventually('the models are listed again', () => worker.refreshes() > refreshed)
  expect(await speech()).toMatchObject({
    state: 'installed',
    installed_version: version,
    download_id: null,
  })
  expect(await worker.send(install)).toMatchObject({
    status: 200,
    body: { status: 'already_installed', runtime: { name: 'speech', state: 'installed' } },
  })
  expect(existsSync(join(fixture.folder, '.partial', 'runtime%3Aspeech'))).toBe(false)
  const entries = await fixture.database.drizzle.execute(sql`
    select action from audit_entry where resource_id = ${String(id)} order by id`)
  expect(entries.map(({ action }) => action)).toEqual(['model_download.start'])
})

test('a paused runtime continues; until it is complete the version before stays', async () => {
  const old = join(folder(), 'node_modules', 'sherpa-onnx-node')
  await mkdir(old, { recursive: true })
  await Bun.write(join(old, 'package.json'), '{"version": "1.0.0"}')
  registry.hold()
  const { download_id: id } = (await worker.send(install)).body
  await eventually('the archives are requested', () => registry.waiting() > 0)
  await worker.send(`POST /downloads/${id}/pause`)
  await worker.until(id, 'paused')
  expect(await speech()).toMatchObject({ state: 'outdated', installed_version: '1.0.0' })
  registry.release()
  await worker.send(`POST /downloads/${id}/resume`)
  await worker.until(id, 'completed')
  expect(await speech()).toMatchObject({ state: 'installed' })
})

test('a cancelled runtime leaves nothing', async () => {
  registry.hold()
  const { download_id: id } = (await worker.send(install)).body
  await eventually('the archives are requested', () => registry.waiting() > 0)
  expect((await worker.send(`DELETE /downloads/${id}`)).status).toBe(200)
  await worker.until(id, 'cancelled')
  expect(await speech()).toMatchObject({ state: 'missing', download_id: null })
  expect(existsSync(join(folder(), '.installing'))).toBe(false)
  expect(existsSync(join(fixture.folder, '.partial', 'runtime%3Aspeech'))).toBe(false)
})

test('a failure says why', async () => {
  registry.publish(runtimePackages({ platform, arch }).map((name) => `${name}-other`))
  const { download_id: id } = (await worker.send(install)).body
  const { error } = await worker.until(id, 'failed')
  expect(error).toMatchObject({
    code: 'install_failed',
    message: expect.stringMatching(/sherpa-onnx.*NPM_CONFIG_REGISTRY/),
  })
  expect(errorCodeOf(await worker.send('POST /runtimes/speach/install'))).toBe('404 not_found')
})

test('install scripts are not run, and nobody is asked to run them', async () => {
  const lines: string[] = []
  const config = loadConfig({ SLUICE_DATA: fixture.folder })
  await installRuntime(localRuntime(config, 'speech'), {
    cacheFolder: join(fixture.folder, 'package-cache'),
    onLine: (line) => lines.push(line),
  })
  expect(lines.join('\n')).toContain('downloaded')
  expect(lines.join('\n')).not.toMatch(/postinstall|untrusted/)
})
