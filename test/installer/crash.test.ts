import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InstallRequest } from '#installer/installer.ts'
import { createTestPlace, type TestPlace } from '#test/support/database.ts'
import { startInstallProcess } from '#test/support/installing/install-process.ts'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'
import { ggufOf, sha256Of } from './installer-fixture.ts'

let place: TestPlace
let folder: string
let origin: ModelOrigin

beforeEach(async () => {
  place = await createTestPlace()
  folder = mkdtempSync(join(tmpdir(), 'sluice-models-'))
  origin = await startModelOrigin()
})
afterEach(async () => {
  await origin.stop()
  await place.remove()
  rmSync(folder, { recursive: true, force: true })
})

const settings = {
  hosts: ['*'],
  ports: [],
  privateHosts: true,
  reserveBytes: 0,
  attemptsMax: 3,
  backoffMs: 5,
  rangesMax: 1,
}
const content = ggufOf(12_000_000)
const slowly = { pace: { bytes: 20_000, everyMs: 20 } }

function taskFor(url: string) {
  const source = { kind: 'url' as const, url, sha256: sha256Of(content) }
  const request: InstallRequest = { model: 'org/killed', source, allowsUnsafe: false }
  return { place, folder, settings, request }
}

/** The installed model on the disk, with the hash of its file. */
async function installed() {
  const home = join(folder, 'org%2Fkilled')
  const record = await Bun.file(join(home, 'model.json')).json()
  const [file] = record.files
  return { record, sha256: sha256Of(await Bun.file(join(home, file.path)).bytes()) }
}

test('workers that are killed repeatedly complete the download with the right hash', async () => {
  const task = taskFor(origin.put('/killed.gguf', content, slowly))
  let standing = 0
  let downloadId: string | undefined
  // Each worker is killed after some progress.
  for (let deaths = 0; deaths < 2; deaths++) {
    const process = startInstallProcess(downloadId === undefined ? task : { ...task, downloadId })
    const killedAt = await process.until(({ bytesCompleted }) => bytesCompleted > standing)
    await process.kill()
    for (const { bytesCompleted } of process.updates)
      expect(bytesCompleted).toBeGreaterThanOrEqual(standing)
    standing = killedAt.bytesCompleted
    downloadId = killedAt.id
  }
  expect(standing).toBeLessThan(content.length)
  expect(readdirSync(folder)).toEqual(['.partial'])

  origin.put('/killed.gguf', content)
  const questions = origin.questions.length
  const last = startInstallProcess({ ...task, ...(downloadId === undefined ? {} : { downloadId }) })
  const end = await last.until(({ status }) => status === 'completed')
  expect(await last.exited).toBe(0)
  expect(end).toMatchObject({ attempts: 3, bytesCompleted: content.length, error: null })
  const bytes = last.updates.map(({ bytesCompleted }) => bytesCompleted)
  expect(bytes).toEqual(bytes.toSorted((a, b) => a - b))
  const asked = origin.questions.slice(questions).filter(({ method }) => method === 'GET')
  const starts = asked.map(({ headers }) =>
    Number(/^bytes=(\d+)-/.exec(headers['range'] ?? '')?.[1]),
  )
  expect(Math.min(...starts)).toBeGreaterThanOrEqual(standing)
  expect(await installed()).toMatchObject({
    record: { name: 'org/killed', isVerified: true, bytes: content.length },
    sha256: sha256Of(content),
  })
})

test('a full disk pauses the download, which can be resumed', async () => {
  const task = taskFor(origin.put('/killed.gguf', content))
  // A file size limit below the size of the model simulates a full disk.
  const limited = ['prlimit', '--fsize=5000000']
  const full = startInstallProcess(task, limited)
  const paused = await full.until(({ status }) => status === 'paused')
  expect(paused.error?.code).toBe('insufficient_storage')
  await full.kill()

  const roomy = startInstallProcess({ ...task, downloadId: paused.id, isResumed: true })
  const end = await roomy.until(({ status }) => status === 'completed')
  expect(end.error).toBeNull()
  expect(await roomy.exited).toBe(0)
  expect((await installed()).sha256).toBe(sha256Of(content))
})
