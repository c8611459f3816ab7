import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord } from '#lib/json.ts'
import {
  inheritedEnvironment,
  signToken,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'

afterAll(stopProcesses)

const main = join(import.meta.dir, '../../src/main.ts')

async function run(args: readonly string[], environment: Record<string, string>) {
  const child = Bun.spawn([process.execPath, main, ...args], {
    cwd: temporaryFolder(),
    env: { ...inheritedEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
  return { stderr: stderr.trim(), code }
}

/** A gateway with an embedded database. */
const start = (dataFolder: string) =>
  startGatewayProcess({ dataFolder, environment: { DATABASE_URL: '' } })

test('a backup of a stopped gateway restores responses and files into another folder', async () => {
  const [old, fresh, target] = [temporaryFolder(), temporaryFolder(), temporaryFolder()]
  const file = join(target, 'backup.tar.gz')
  const gateway = await start(old)
  const answer = asRecord(await (await gateway.ask({ model: 'demo', input: 'Hi.' })).json())
  const headers = { authorization: `Bearer ${await signToken(['admins'])}` }
  const form = new FormData()
  form.set('file', new File(['Kept in the archive.'], 'note.txt'))
  const upload = await gateway.request('/v1/files', { method: 'POST', headers, body: form })
  const { id } = asRecord(await upload.json())

  const busy = await run(['backup', '--file', file], { SLUICE_DATA: old })
  expect(busy).toEqual({ stderr: expect.stringContaining('is in use by process'), code: 1 })
  expect(existsSync(file)).toBeFalse()
  gateway.signal('SIGTERM')
  await gateway.exited

  expect(await run(['backup', '--file', file], { SLUICE_DATA: old })).toEqual({
    stderr: '',
    code: 0,
  })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const again = await run(['backup', '--file', file], { SLUICE_DATA: old })
  expect(again).toEqual({ stderr: expect.stringContaining('exists already'), code: 1 })

  expect(await run(['restore', '--file', file], { SLUICE_DATA: fresh })).toEqual({
    stderr: '',
    code: 0,
  })
  const restored = await start(fresh)
  const response = await restored.request(`/v1/responses/${answer['id']}`)
  expect(asRecord(await response.json())['id']).toBe(answer['id'])
  const content = await restored.request(`/v1/files/${id}/content`, { headers })
  expect(await content.text()).toBe('Kept in the archive.')
  restored.signal('SIGTERM')
  await restored.exited

  const occupied = await run(['restore', '--file', file], { SLUICE_DATA: fresh })
  expect(occupied).toEqual({ stderr: expect.stringContaining('move that away first'), code: 1 })
})

test('a damaged archive, another archive and one of a newer version change nothing', async () => {
  const folder = temporaryFolder()
  const [damaged, other, newer] = ['damaged', 'other', 'newer'].map((name) => join(folder, name))
  const data = temporaryFolder()
  const backUp = (file: string | undefined) =>
    run(['backup', '--files-only', '--file', file ?? ''], { SLUICE_DATA: data })
  await Bun.write(join(data, 'files/ab/content'), 'x'.repeat(100_000))
  await backUp(damaged)
  truncateSync(damaged ?? '', statSync(damaged ?? '').size - 20)
  writeFileSync(other ?? '', Bun.gzipSync(new Uint8Array(1024)))
  await backUp(newer)
  const tar = Buffer.from(Bun.gunzipSync(readFileSync(newer ?? '')))
  const at = tar.indexOf('"newest_migration": ') + '"newest_migration": '.length
  tar.write('9', at)
  writeFileSync(newer ?? '', Bun.gzipSync(new Uint8Array(tar)))

  const target = temporaryFolder()
  const restore = (file: string | undefined) =>
    run(['restore', '--file', file ?? ''], { SLUICE_DATA: target })
  expect(await restore(damaged)).toMatchObject({
    stderr: expect.stringContaining('cannot be read'),
  })
  expect(await restore(other)).toMatchObject({ stderr: expect.stringContaining('is not a backup') })
  expect(await restore(newer)).toMatchObject({ stderr: expect.stringContaining('newer version') })
  expect(await restore('nowhere')).toMatchObject({ stderr: expect.stringContaining('There is no') })
  expect(existsSync(join(target, 'files'))).toBeFalse()
})

test('the database of a PostgreSQL server is not part of a backup', async () => {
  const environment = { SLUICE_DATA: temporaryFolder(), DATABASE_URL: 'postgres://127.0.0.1:1/x' }
  const { stderr, code } = await run(['backup'], environment)
  expect([stderr, code]).toEqual([expect.stringContaining('back it up with pg_dump'), 1])
})
