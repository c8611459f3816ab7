import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '#config/load.ts'
import { installFromHub } from '#installer/install-command.ts'
import { type InstallNow, installNow } from '#installer/install-now.ts'
import { createTerminalProgress } from '#installer/terminal-progress.ts'
import { AppError } from '#lib/errors.ts'
import { type ModelHub, startModelHub } from '#test/support/embedding/model-hub.ts'

/** The commands that install models: without a database, beside a running gateway. */

const root = mkdtempSync(join(tmpdir(), 'sluice-now-'))
const weights = crypto.getRandomValues(new Uint8Array(200_000).subarray(0, 65_536))
let hub: ModelHub
beforeAll(() => {
  hub = startModelHub({
    'org/model': { 'model.onnx': weights, 'config.json': new TextEncoder().encode('{}') },
    'other/model': { 'model.onnx': weights },
  })
})
afterAll(async () => {
  await hub.stop()
  rmSync(root, { recursive: true, force: true })
})

function start() {
  const folder = mkdtempSync(join(root, 'models-'))
  const config = loadConfig({ SLUICE_MODELS: folder, SLUICE_HUB_URL: hub.url })
  const shown: number[] = []
  const view = { log() {}, progress: (bytes: number) => void shown.push(bytes) }
  const run = (given: Partial<InstallNow> = {}, signal = new AbortController().signal) =>
    installNow(
      config,
      { model: 'org/model', source: sourceOf('org/model'), ...given },
      { view, signal },
    )
  return { folder, run, shown }
}

function sourceOf(repository: string) {
  return { kind: 'hub', repository, revision: 'main', files: [] } as const
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'installed',
    (error: unknown) => (error instanceof AppError ? error.wireCode : String(error)),
  )

test('installs verified files and reports each step', async () => {
  const { folder, run, shown } = start()
  const installed = await run()
  expect(installed).toMatchObject({ name: 'org/model', isVerified: true, bytes: 65_538 })
  expect(shown.at(-1)).toBe(65_538)
  const [file] = installed.files.filter(({ path }) => path.endsWith('.onnx'))
  const path = join(folder, 'org%2Fmodel', file?.path ?? '')
  expect(await Bun.file(path).bytes()).toEqual(weights)
  // The sweep of a gateway deletes versions that are UUIDs until their record is complete.
  expect(file?.path).toStartWith('command-')
  expect(readdirSync(join(folder, '.partial-commands'))).toEqual([])
})

test('a current model is not downloaded again', async () => {
  const { run } = start()
  await run()
  const before = hub.downloads()
  await run()
  expect(hub.downloads()).toBe(before)
})

test('only chosen files are installed', async () => {
  const { run } = start()
  const { files } = await run({ choose: (all) => all.filter(({ path }) => path === 'config.json') })
  expect(files).toHaveLength(1)
})

test('the name of a model from another source is refused', async () => {
  const { run } = start()
  await run()
  expect(await codeOf(run({ source: sourceOf('other/model') }))).toBe('name_taken')
})

test('an interrupted installation leaves no lock, and the next one completes', async () => {
  const { folder, run } = start()
  const stopped = new AbortController()
  stopped.abort(new Error('interrupted'))
  expect(await codeOf(run({}, stopped.signal))).toContain('interrupted')
  expect(existsSync(join(folder, '.partial-commands', 'org%2Fmodel.lock'))).toBeFalse()
  expect(await codeOf(run())).toBe('installed')
})

test('two commands do not install a model at the same time; a dead one is ignored', async () => {
  const { folder, run } = start()
  const lock = join(folder, '.partial-commands', 'org%2Fmodel.lock')
  mkdirSync(join(folder, '.partial-commands'), { recursive: true })
  writeFileSync(lock, String(process.pid))
  expect(await codeOf(run())).toBe('download_active')
  const child = Bun.spawn(['true'])
  await child.exited
  writeFileSync(lock, String(child.pid))
  expect(await codeOf(run())).toBe('installed')
})

test('a command says soon that its hub is unreachable, and what to set', async () => {
  const written: string[] = []
  using _ = spyOn(process.stderr, 'write').mockImplementation((text) => written.push(`${text}`) > 0)
  const config = loadConfig({
    SLUICE_MODELS: mkdtempSync(join(root, 'models-')),
    SLUICE_HUB_URL: 'http://127.0.0.1:1',
  })
  const failure = await installFromHub(
    { ...config, installer: { ...config.installer, backoffMs: 1 } },
    { repository: 'org/model', revision: 'main', files: [] },
  ).catch(String)
  expect(failure).toContain('127.0.0.1:1 (installer.hub_url) could not be reached.')
  expect(failure).toContain('set SLUICE_HUB_URL')
  expect(written).toHaveLength(3)
  expect(written[0]).toEndWith('Retrying in 1 s.\n')
})

test('a terminal shows a bar, a pipe a line per tenth', () => {
  const written: string[] = []
  const output = (isTTY: boolean) =>
    createTerminalProgress({
      isTTY,
      write: (text: string | Uint8Array) => written.push(`${text}`) > 0,
    })
  const bar = output(true)
  bar.progress(50, 100)
  bar.end()
  expect(written.join('')).toContain('[###############...............] 50 %')
  written.length = 0
  const lines = output(false)
  for (let bytes = 0; bytes <= 100; bytes++) lines.progress(bytes, 100)
  expect(written).toHaveLength(10)
})
