import { afterEach, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { postgresPrograms } from '#test/simulation/site/own-postgres.ts'
import { createBarePlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  type GatewayProcess,
  inheritedEnvironment,
  signToken,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { readFrames } from '#test/support/response-frames.ts'

const places: TestPlace[] = []

afterEach(async () => {
  await stopProcesses()
  for (const place of places.splice(0)) await place.remove()
})

const main = join(import.meta.dir, '../../src/main.ts')
const word = 'quintessential'

async function run(command: readonly string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn([...command], {
    cwd: temporaryFolder(),
    env: { ...inheritedEnvironment(), ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
  expect({ stderr, code }).toMatchObject({ code: 0 })
}

const sluice = (args: readonly string[], environment: Record<string, string>) =>
  run([process.execPath, main, ...args], environment)

type Send = (path: string, json?: object, init?: RequestInit) => Promise<JsonObject>

async function senderOf(gateway: GatewayProcess): Promise<Send> {
  const authorization = `Bearer ${await signToken(['admins'])}`
  return async (path, json, init = {}) => {
    const body = json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }
    const headers = { authorization, ...(json && { 'content-type': 'application/json' }) }
    const answer = await gateway.request(path, { ...body, ...init, headers })
    const text = await answer.text()
    expect(`${path} ${answer.status} ${text}`).toMatch(/ 20\d /)
    return asRecord(JSON.parse(text))
  }
}

/** Something of each kind that the gateway keeps. */
async function populate(gateway: GatewayProcess) {
  const send = await senderOf(gateway)
  const first = await send('/v1/responses', { model: 'demo', input: 'The first turn.' })
  const streamed = await gateway.ask({ model: 'demo', input: 'A stream.', stream: true })
  const frames = readFrames(await streamed.text())
  const collection = await send('/v1/collections', { name: 'kept' })
  const form = new FormData()
  form.set('file', new File([`The ${word} text of a document.`], 'note.txt'))
  const file = await send('/v1/files', undefined, { method: 'POST', body: form })
  const files = `/v1/vector_stores/${collection['id']}/files`
  await send(files, { file_id: file['id'] })
  await eventually('it is indexed', async () => {
    return (await send(`${files}/${file['id']}`))['status'] === 'completed'
  })
  const key = await send('/v1/api-keys', { name: 'kept' })
  const agent = await send('/v1/agents', { name: 'kept', model: 'demo', instructions: 'Be kept.' })
  await send('/v1/config', undefined, {
    method: 'PATCH',
    body: JSON.stringify({ retrieval_k: 7 }),
  })
  await eventually('the usage is summed', async () => {
    return Number(asRecord((await send('/v1/usage'))['totals'])['requests']) >= 2
  })
  const usage = asRecord((await send('/v1/usage'))['totals'])
  return { first, frames, file, key, agent, usage }
}

/** Everything is there, and works on: searches, downloads, further turns, keys. */
async function verify(gateway: GatewayProcess, kept: Awaited<ReturnType<typeof populate>>) {
  const send = await senderOf(gateway)
  expect(await send(`/v1/responses/${kept.first['id']}`)).toEqual(kept.first)
  const id = asRecord(kept.frames[0]?.['response'])['id']
  const authorization = `Bearer ${await signToken(['admins'])}`
  const replayed = await gateway.request(`/v1/responses/${id}?stream=true`, {
    headers: { authorization },
  })
  expect(readFrames(await replayed.text())).toEqual(kept.frames)
  const found = await send('/v1/collections/kept/search', { query: word })
  expect(JSON.stringify(found)).toContain(`The ${word} text`)
  const content = await gateway.request(`/v1/files/${kept.file['id']}/content`, {
    headers: { authorization },
  })
  expect(await content.text()).toContain(word)
  const next = { model: 'demo', input: 'The next turn.', previous_response_id: kept.first['id'] }
  expect(await send('/v1/responses', next)).toMatchObject({ status: 'completed' })
  const withKey = { headers: { 'x-api-key': String(kept.key['key']) } }
  expect((await gateway.request('/v1/models', withKey)).status).toBe(200)
  expect((await send(`/v1/agents/${kept.agent['id']}`))['instructions']).toBe('Be kept.')
  expect((await send('/v1/config'))['retrieval_k']).toBe(7)
  const { requests } = asRecord((await send('/v1/usage'))['totals'])
  expect(Number(requests)).toBeGreaterThanOrEqual(Number(kept.usage['requests']))
}

async function stop(gateway: GatewayProcess): Promise<void> {
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
}

test('a restored embedded database finds, continues and accepts what was kept', async () => {
  const [old, fresh] = [temporaryFolder(), temporaryFolder()]
  const file = join(temporaryFolder(), 'backup.tar.gz')
  const start = (dataFolder: string) =>
    startGatewayProcess({ dataFolder, environment: { DATABASE_URL: '' } })
  const gateway = await start(old)
  const kept = await populate(gateway)
  await stop(gateway)
  await sluice(['backup', '--file', file], { SLUICE_DATA: old })
  await sluice(['restore', '--file', file], { SLUICE_DATA: fresh })
  await verify(await start(fresh), kept)
})

const programs = postgresPrograms()

test.skipIf(serverUrl === undefined || programs === null)(
  'pg_dump and a backup of the files, made while the gateway runs, restore the same',
  async () => {
    const [from, to] = [await createBarePlace(), await createBarePlace()]
    places.push(from, to)
    const folder = temporaryFolder()
    const [dump, files] = [join(folder, 'sluice.dump'), join(folder, 'files.tar.gz')]
    const start = ({ dataFolder, databaseUrl = '' }: TestPlace) =>
      startGatewayProcess({ dataFolder, environment: { DATABASE_URL: databaseUrl } })
    const gateway = await start(from)
    const kept = await populate(gateway)
    const urlOf = ({ databaseUrl = '' }: TestPlace) => databaseUrl.replace(/\?.*/, '')
    const environmentOf = (place: TestPlace) => ({
      SLUICE_DATA: place.dataFolder,
      DATABASE_URL: place.databaseUrl ?? '',
    })
    // The commands of docs/backup.md.
    await run([`${programs}/pg_dump`, '--format=custom', `--file=${dump}`, urlOf(from)])
    await sluice(['backup', '--files-only', '--file', files], environmentOf(from))
    await stop(gateway)
    mkdirSync(to.dataFolder, { recursive: true })
    await run([`${programs}/pg_restore`, `--dbname=${urlOf(to)}`, '--no-owner', dump])
    await sluice(['restore', '--file', files], environmentOf(to))
    await sluice(['migrate'], environmentOf(to))
    await verify(await start(to), kept)
  },
)
