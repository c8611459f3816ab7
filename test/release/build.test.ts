import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord } from '#lib/json.ts'
import { version } from '#package.json'
import { createTestPlace, type TestPlace } from '#test/support/database.ts'
import { makePdf } from '#test/support/documents.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  childrenOf,
  type GatewayProcess,
  inheritedEnvironment,
  isAlive,
  killProcess,
  launchGateway,
  signToken,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import { speechFile, speechToolsExist } from '#test/support/speech-material.ts'
import { type Build, install, makeBuild } from './installed-build.ts'

/** Bun itself has 107 MB. */
const binaryBytesMax = 130_000_000

let build: Build
let place: TestPlace
beforeAll(async () => {
  ;[build, place] = await Promise.all([makeBuild(), createTestPlace()])
})
afterAll(async () => {
  await stopProcesses()
  await place.remove()
})

test('the binary is not larger than announced', () => {
  expect(statSync(build.binary).size).toBeLessThan(binaryBytesMax)
})

describe.each(['binary', 'bundle'] as const)('the %s', (form) => {
  test('serves everything in an empty directory without packages, and again after a restart', async () => {
    const program = install(form, { build })
    const first = await program.start()
    const answer = await first.ask({ model: 'demo', input: 'Hi.' })
    const id = String(asRecord(await answer.json())['id'])
    expect(answer.status).toBe(200)
    await expectDocs(first)
    await expectConsole(first)
    await expectIndexedPdf(first)
    await expectCount(first)
    await expectSpeech(first)
    await expectNoMp3(first)
    const processes = [first.pid, ...childrenOf(first.pid)]
    expect(processes).toHaveLength(2)
    first.signal('SIGTERM')
    expect(await first.exited).toBe(0)
    expect(processes.filter(isAlive)).toEqual([])

    const second = await program.start()
    const again = await second.request(`/v1/responses/${id}`)
    expect([again.status, asRecord(await again.json())['id']]).toEqual([200, id])
    second.signal('SIGTERM')
    expect(await second.exited).toBe(0)
    expect(readdirSync(program.cwd)).toEqual(['data'])
    expect(readdirSync(program.home)).toEqual([])
  })

  test.skipIf(!process.env['DATABASE_URL'])(
    'runs two workers on PostgreSQL and restarts one',
    async () => {
      const program = install(form, { build, databaseUrl: place.databaseUrl })
      const gateway = await program.start({ SLUICE_WORKERS: '2' })
      const workers = childrenOf(gateway.pid)
      expect(workers).toHaveLength(2)
      killProcess(workers[0])
      await gateway.logged('listening', 3)
      expect(childrenOf(gateway.pid)).toHaveLength(2)
      expect((await gateway.ask({ model: 'demo', input: 'Hi.' })).status).toBe(200)
      const processes = [gateway.pid, ...workers, ...childrenOf(gateway.pid)]
      gateway.signal('SIGTERM')
      expect(await gateway.exited).toBe(0)
      expect(processes.filter(isAlive)).toEqual([])
    },
  )

  test('has every command', async () => {
    const program = install(form, { build, databaseUrl: place.databaseUrl })
    const run = async (...args: string[]) => {
      const { stdout, stderr, code } = await program.run(...args)
      return { stdout: stdout.trim(), stderr: stderr.trim(), code }
    }
    expect(await run('--version')).toEqual({ stdout: version, stderr: '', code: 0 })
    expect(await run('--help')).toMatchObject({
      stdout: expect.stringContaining('  sluice token '),
      code: 0,
    })
    expect(await run('migrate')).toMatchObject({ code: 0 })
    expect(JSON.parse((await run('config')).stdout)).toMatchObject({ port: 8080 })
    expect((await run('token')).stdout).toMatch(/^eyJ/)
    expect(JSON.parse((await run('doctor', '--json')).stdout)).toMatchObject({ ok: true })
    expect(await run('health')).toMatchObject({ code: 1 })
    expect(await run('wroker')).toMatchObject({ code: 1 })
    const { stdout } = await run('--help')
    const names = [...stdout.matchAll(/^ {2}sluice ([a-z0-9]+(?: [a-z]+)?) {2,}/gm)].map(
      ([, name]) => name,
    )
    expect(names.length).toBeGreaterThan(15)
    const helps = await Promise.all(names.map((name = '') => run(...name.split(' '), '--help')))
    expect(helps.filter(({ stdout, code }) => code !== 0 || !stdout.startsWith('Usage'))).toEqual(
      [],
    )
  })
})

test.skipIf(!speechToolsExist).each(['image', 'bundle'] as const)(
  'the %s decodes MP3 with the separate package',
  async (form) => {
    const { databaseUrl } = place
    const gateway = await install(form, { build, withMp3: form === 'bundle', databaseUrl }).start()
    const { text, reason } = await transcribe(gateway, speechFile('fox', 'mp3'), 'fox.mp3')
    expect({ text: typeof text, reason }).toEqual({ text: 'string', reason: undefined })
    gateway.signal('SIGTERM')
    expect(await gateway.exited).toBe(0)
  },
)

test.skipIf(Bun.which('npm') === null)(
  'the packed npm package is installed and serves',
  async () => {
    const [folder, home] = [temporaryFolder(), temporaryFolder()]
    const env = { ...inheritedEnvironment(), HOME: home }
    const npm = async (...args: string[]) => {
      const child = Bun.spawn(['npm', ...args], {
        cwd: folder,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const [output, errors, code] = await Promise.all([
        child.stdout.text(),
        child.stderr.text(),
        child.exited,
      ])
      if (code !== 0) throw new Error(`npm ${args[0]} failed: ${errors}`)
      return output.trim()
    }
    const archive = await npm('pack', '--silent', build.packageFolder)
    await npm('install', '--offline', '--omit=optional', '--no-audit', '--no-fund', `./${archive}`)
    expect(readdirSync(join(folder, 'node_modules/.bin'))).toContain('sluice')
    const command = [join(folder, 'node_modules/.bin/sluice')]
    const dataFolder = join(folder, 'data')
    const gateway = await launchGateway({ command, dataFolder, environment: { DATABASE_URL: '' } })
    await gateway.logged('listening')
    expect((await gateway.ask({ model: 'demo', input: 'Hi.' })).status).toBe(200)
    await expectIndexedPdf(gateway)
    gateway.signal('SIGTERM')
    expect(await gateway.exited).toBe(0)
  },
)

/** The console is part of a build, compressed. */
async function expectConsole(gateway: GatewayProcess): Promise<void> {
  const html = await (await fetch(`${gateway.url()}/console/`)).text()
  const paths = [...html.matchAll(/\/console\/assets\/[^"]+/g)].map(([path]) => path)
  expect(paths.length).toBeGreaterThan(1)
  for (const path of paths) {
    const asset = await fetch(gateway.url() + path)
    expect([path, asset.status]).toEqual([path, 200])
    expect(await asset.text()).not.toContain('\u{fffd}\u{fffd}')
  }
}

async function expectDocs(gateway: GatewayProcess): Promise<void> {
  for (const page of ['/docs', '/scalar']) {
    const html = await (await fetch(gateway.url() + page)).text()
    const paths = [...html.matchAll(/\/docs\/assets\/[^"]+/g)].map(([path]) => path)
    expect(paths.length).toBeGreaterThan(2)
    for (const path of paths) {
      const asset = await fetch(gateway.url() + path)
      expect([path, asset.status]).toEqual([path, 200])
      // A compressed file would not decode as text.
      expect(await asset.text()).not.toContain('\u{fffd}\u{fffd}')
    }
  }
}

async function expectIndexedPdf(gateway: GatewayProcess): Promise<void> {
  const authorization = `Bearer ${await signToken(['admins'])}`
  const send = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization, ...(init.body instanceof FormData ? {} : json) }
    return asRecord(await (await gateway.request(path, { ...init, headers })).json())
  }
  const json = { 'content-type': 'application/json' }
  await send('/v1/collections', { method: 'POST', body: '{"name": "handbook"}' })
  const form = new FormData()
  const pdf = makePdf([['Vacation days may be carried over until March.']])
  form.set('file', new File([pdf as Uint8Array<ArrayBuffer>], 'handbook.pdf'))
  form.set('collections', '["handbook"]')
  const { id } = await send('/v1/files', { method: 'POST', body: form })
  let status: unknown
  await eventually('the PDF is indexed', async () => {
    status = (await send(`/v1/files/${id}`))['retrieval_status']
    return /^RAG (Available|Failed)/.test(String(status))
  })
  expect(status).toBe('RAG Available')
  const body = '{"query": "vacation carried over"}'
  const found = await send('/v1/collections/handbook/search', { method: 'POST', body })
  expect(JSON.stringify(found)).toContain('until March')
}

/** By the tokenizer, once its thread has loaded it. */
async function expectCount(gateway: GatewayProcess): Promise<void> {
  const body = JSON.stringify({
    model: 'demo',
    messages: [{ role: 'user', content: 'The quick brown fox jumps over the lazy dog.' }],
  })
  await eventually('the tokenizer counts', async () => {
    const response = await gateway.request('/compat/v1/messages/count_tokens', {
      method: 'POST',
      headers: { authorization: `Bearer ${await signToken()}`, 'content-type': 'application/json' },
      body,
    })
    return response.headers.get('x-sluice-token-count') === 'tokenizer'
  })
}

async function expectSpeech(gateway: GatewayProcess): Promise<void> {
  const token = await signToken()
  // Without tools that encode speech: one second of Opus's packet for silence.
  const [query, packets] = speechToolsExist
    ? ['encoding=opus', [speechFile('fox', 'ogg')]]
    : [
        'encoding=opus&container=raw',
        Array.from({ length: 50 }, () => new Uint8Array([0xf8, 0xff, 0xfe])),
      ]
  const client = await openSpeech(gateway.port(), { query: String(query), token })
  await client.start()
  for (const packet of packets as Uint8Array[]) client.sendAudio(packet)
  await client.end()
  expect(client.of('error')).toEqual([])
  if (speechToolsExist) expect(client.finals().length).toBeGreaterThan(0)
}

async function expectNoMp3(gateway: GatewayProcess): Promise<void> {
  const { reason } = await transcribe(gateway, new TextEncoder().encode('ID3'), 'song.mp3')
  expect(reason).toContain('The operator installs it with: sluice mp3 install')
}

async function transcribe(gateway: GatewayProcess, audio: Uint8Array, name: string) {
  const form = new FormData()
  form.set('file', new File([audio as Uint8Array<ArrayBuffer>], name))
  form.set('model', 'whisper-1')
  const response = await gateway.request('/v1/audio/transcriptions', { method: 'POST', body: form })
  const body = asRecord(await response.json())
  return { text: body['text'], reason: asRecord(body['error'])['message'] }
}
