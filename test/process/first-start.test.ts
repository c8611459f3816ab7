import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as onnx from '#inference/upstreams/onnx/package.ts'
import { isRecord } from '#lib/json.ts'
import {
  type GatewayProcess,
  inheritedEnvironment,
  launchGateway,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'

afterEach(stopProcesses)

/** As on a new machine: no database, no identity provider, an empty data folder. */
async function startFresh(dataFolder: string, environment: Record<string, string> = {}) {
  const gateway = await launchGateway({
    dataFolder,
    environment: { JWT_SECRET: '', ...environment },
  })
  await gateway.logged('listening')
  return gateway
}

/** The printed command; it is the last output on stderr. */
async function printedCommand({ stderr }: GatewayProcess): Promise<string> {
  const givesUpAt = performance.now() + helperTimeoutMs
  while (!/^ {2}-d .*\n\n/m.test(stderr())) {
    if (performance.now() > givesUpAt) throw new Error(`no command is printed: ${stderr()}`)
    await Bun.sleep(10)
  }
  return stderr().slice(stderr().indexOf('\ncurl ') + 1)
}

async function runProgram(command: string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn(command, {
    cwd: join(import.meta.dir, '../..'),
    env: { ...inheritedEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr, code }
}

function askModels({ request }: GatewayProcess, headers: Record<string, string>) {
  return request('/v1/models', { headers })
}

/** The addresses on which a port of ours listens, from the kernel's table. */
async function listeningAddresses(port: number): Promise<string[]> {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0')
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => Bun.file(`/proc/net/${name}`).text()),
  )
  const isListening = new RegExp(`^ *\\d+: ([0-9A-F]+):${hexPort} [0-9A-F]+:0000 0A `, 'gm')
  return tables.flatMap((table) =>
    [...table.matchAll(isListening)].map(([, address]) => address ?? ''),
  )
}

test('the first start prints how engines are installed and a command that streams a response; the second start keeps keys and tokens', async () => {
  const dataFolder = temporaryFolder()
  const first = await startFresh(dataFolder)
  const command = await printedCommand(first)
  for (const engine of ['model', 'embed', 'speech']) {
    expect(first.stderr()).toMatch(new RegExp(`^  bun run ${engine}:install +\\w`, 'm'))
  }
  const pasted = await runProgram(['bash', '-c', command])
  expect(pasted.code).toBe(0)
  expect(pasted.stdout).toStartWith('event: response.created\n')
  expect(pasted.stdout).toEndWith('data: [DONE]\n\n')

  const oldToken = /Bearer ([^']+)'/.exec(command)?.[1] ?? ''
  const created = await first.request('/v1/api-keys', {
    method: 'POST',
    headers: { authorization: `Bearer ${oldToken}` },
    body: JSON.stringify({ name: 'kept' }),
  })
  expect(created.status).toBe(200)
  const body: unknown = await created.json()
  const key = isRecord(body) ? String(body['key']) : ''
  first.signal('SIGTERM')
  expect(await first.exited).toBe(0)

  // One of them is installed.
  const runtime = join(dataFolder, 'onnx', 'node_modules', onnx.packageName)
  mkdirSync(runtime, { recursive: true })
  writeFileSync(join(runtime, 'package.json'), JSON.stringify({ version: onnx.packageVersion }))
  const second = await startFresh(dataFolder)
  await printedCommand(second)
  expect(second.stderr()).toContain('bun run speech:install')
  expect(second.stderr()).not.toContain('bun run embed:install')
  expect((await askModels(second, { 'x-api-key': key })).status).toBe(200)
  expect((await askModels(second, { authorization: `Bearer ${oldToken}` })).status).toBe(200)
  expect((await askModels(second, { authorization: `Bearer ${oldToken}x` })).status).toBe(401)

  const made = await runProgram(
    ['bun', 'run', '--silent', 'token', '--sub', 'ana', '--groups', 'users'],
    { SLUICE_DATA: dataFolder },
  )
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(made.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  const token = made.stdout.trim()
  expect((await askModels(second, { authorization: `Bearer ${token}` })).status).toBe(200)
})

test('without an identity provider it listens on loopback only, whatever HOST says', async () => {
  const gateway = await startFresh(temporaryFolder(), { HOST: '0.0.0.0' })
  const command = await printedCommand(gateway)
  expect(command).toContain(`http://127.0.0.1:${gateway.port()}/v1/responses`)
  expect(await listeningAddresses(gateway.port())).toEqual(['0100007F'])
  const warning = gateway.log().find(({ level }) => level === 'warn')
  expect(warning).toMatchObject({ host: '127.0.0.1' })
  expect(String(warning?.['message'])).toContain('loopback only')
})

test('with JWT_SECRET no command and no token are printed, and HOST is respected', async () => {
  const gateway = await launchGateway({ environment: { HOST: '0.0.0.0' } })
  await gateway.logged('listening')
  expect((await gateway.request('/v1/models')).status).toBe(200)
  expect(await listeningAddresses(gateway.port())).toEqual(['00000000'])
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
  expect(gateway.stderr()).toBe('')
  expect(gateway.stdout()).not.toMatch(/curl|Bearer|eyJ/)
})
