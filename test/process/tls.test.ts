import { afterEach, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { serverUrl } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  configFile,
  type GatewayProcess,
  inheritedEnvironment,
  launchGateway,
  signToken,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { openSpeech } from '#test/support/speech-client.ts'

/** The listener with TLS: what is served over it, and the replacement of its certificate. */

afterEach(stopProcesses)

const fixtures = join(import.meta.dir, '../fixtures/tls')
const main = join(import.meta.dir, '../../src/main.ts')
const fixture = (name: string) => readFileSync(join(fixtures, name), 'utf8')
const ca = `${fixture('authority.pem')}${fixture('self-signed.pem')}`
/** The common name of the issuer tells the certificates apart. */
const issuers = { localhost: 'authority of the tests', 'self-signed': 'localhost' } as const
type Pair = keyof typeof issuers

/** A folder with a certificate and its key, which `replace` exchanges by renaming. */
function certificateFolder(first: Pair) {
  const folder = temporaryFolder()
  const paths = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  const replaceOne = (what: keyof typeof paths, name: string) => {
    copyFileSync(join(fixtures, name), `${paths[what]}.new`)
    renameSync(`${paths[what]}.new`, paths[what])
  }
  const replace = (pair: Pair) => {
    replaceOne('key', `${pair}.key`)
    replaceOne('cert', `${pair}.pem`)
  }
  replace(first)
  return { paths, replaceOne, replace }
}

function settings({ cert, key }: { cert: string; key: string }, more = ''): string {
  return configFile(`[tls]\ncert = "${cert}"\nkey = "${key}"\ncheck_ms = 100\n${more}
[[engine]]\nname = "demo"\nkind = "demo"\n`)
}

function start(config: string, environment: Record<string, string> = {}) {
  return startGatewayProcess({ environment: { SLUICE_CONFIG: config, ...environment } })
}

/** A connection, and the issuer of the certificate that it got. */
async function handshake(gateway: GatewayProcess, more: object = {}) {
  const socket = connect({ port: gateway.port(), host: '127.0.0.1', ca, ...more })
  await new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
  })
  return socket
}

async function issuerAt(gateway: GatewayProcess): Promise<string> {
  const socket = await handshake(gateway)
  const { issuer } = socket.getPeerCertificate()
  socket.destroy()
  return String(issuer.CN)
}

/** Sends a request over an open connection; the whole response if it is short. */
async function exchange(socket: TLSSocket, head: readonly string[]): Promise<string> {
  let text = ''
  let isClosed = false
  const onData = (data: Buffer) => {
    text += data
  }
  const onClose = () => {
    isClosed = true
  }
  socket.on('data', onData)
  socket.on('error', onClose)
  socket.on('close', onClose)
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await eventually('a response', () => text.includes('"ok"') || isClosed)
  socket.off('data', onData)
  return text
}

const probe = ['GET /livez HTTP/1.1', 'host: gateway']

const over = async (gateway: GatewayProcess, path: string, init: RequestInit = {}) =>
  fetch(`https://127.0.0.1:${gateway.port()}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${await signToken(['admins'])}`, ...init.headers },
    tls: { ca },
  })

const ask = (gateway: GatewayProcess, body: object) =>
  over(gateway, '/v1/responses', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', input: 'Hi', store: false, ...body }),
  })

test('streams, WebSockets, live speech, large uploads and downloads are served over TLS', async () => {
  const { paths } = certificateFolder('localhost')
  const gateway = await start(settings(paths, 'hsts_max_age_s = 31536000\n'))
  expect(await issuerAt(gateway)).toBe(issuers.localhost)
  const { headers } = await over(gateway, '/livez')
  expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
  const authorization = `Bearer ${await signToken()}`

  const stream = await (await ask(gateway, { stream: true })).text()
  expect(stream).toEndWith('data: [DONE]\n\n')
  expect(stream).toContain('response.completed')

  const socket = await openSocket(gateway.port(), { ca, headers: { authorization } })
  const turn = { model: 'demo', input: 'Hi', store: false }
  expect((await socket.turn(turn)).response).toMatchObject({ status: 'completed' })

  const speech = await openSpeech(gateway.port(), { ca, token: await signToken() })
  await speech.start()
  for (let part = 0; part < 20; part++) speech.sendAudio(new Uint8Array(32_000))
  expect((await speech.end()).stats).toMatchObject({ audio_ms: 20_000 })

  const content = Buffer.alloc(40 * 1024 * 1024, 'TLS and large files. ')
  const form = new FormData()
  form.set('file', new File([content], 'large.txt', { type: 'text/plain' }))
  form.set('purpose', 'user_data')
  const uploaded = await over(gateway, '/v1/files', { method: 'POST', body: form })
  const { id } = (await uploaded.json()) as { id: string }
  const downloaded = await over(gateway, `/v1/files/${id}/content`)
  expect(Buffer.from(await downloaded.arrayBuffer()).equals(content)).toBe(true)
})

test('a replaced certificate reaches new connections, while open ones continue', async () => {
  const folder = certificateFolder('localhost')
  const gateway = await start(settings(folder.paths))
  const authorization = `Bearer ${await signToken()}`
  const kept = await handshake(gateway)
  expect(await exchange(kept, probe)).toContain('200 OK')
  const socket = await openSocket(gateway.port(), { ca, headers: { authorization } })
  const speech = await openSpeech(gateway.port(), { ca, token: await signToken() })
  await speech.start()
  const stream = await ask(gateway, { model: 'demo', input: 'word '.repeat(60), stream: true })

  for (const pair of ['self-signed', 'localhost', 'self-signed'] as const) {
    folder.replace(pair)
    await eventually('it is served', async () => (await issuerAt(gateway)) === issuers[pair])
    // Past the time in which the former listening socket completes handshakes.
    await Bun.sleep(500)
    expect(await issuerAt(gateway)).toBe(issuers[pair])
    expect(await exchange(kept, probe)).toContain('200 OK')
  }
  expect(
    gateway.log().filter(({ message }) => message === 'TLS certificate reloaded'),
  ).toHaveLength(3)
  const turn = { model: 'demo', input: 'Hi', store: false }
  expect((await socket.turn(turn)).response).toMatchObject({ status: 'completed' })
  speech.sendAudio(new Uint8Array(32_000))
  expect((await speech.end()).stats).toMatchObject({ audio_ms: 1_000 })
  expect(await stream.text()).toEndWith('data: [DONE]\n\n')

  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
})

test('no connection is refused or reset while certificates are replaced', async () => {
  const folder = certificateFolder('localhost')
  const gateway = await start(settings(folder.paths))
  const failures: string[] = []
  let isOver = false
  let served = 0
  const lane = async () => {
    while (!isOver) {
      try {
        const connection = await handshake(gateway)
        const text = await exchange(connection, [...probe, 'connection: close'])
        if (text.includes('200 OK')) served++
        else failures.push(`incomplete: ${text.slice(0, 80)}`)
      } catch (error) {
        failures.push(String(error))
      }
    }
  }
  const lanes = Array.from({ length: 16 }, lane)
  const reloaded = 'TLS certificate reloaded'
  for (let times = 1; times <= 8; times++) {
    folder.replace(times % 2 === 1 ? 'self-signed' : 'localhost')
    await gateway.logged(reloaded, times)
    const before = served
    await eventually('connections are served', () => served > before + 50)
  }
  isOver = true
  await Promise.all(lanes)
  expect(failures).toEqual([])
})

test('an unusable pair keeps the present one, and the log says why once', async () => {
  const folder = certificateFolder('localhost')
  const gateway = await start(settings(folder.paths))
  const kept = 'TLS certificate not reloaded, the present one stays'
  const reasons = () =>
    gateway.log().flatMap(({ message, reason }) => (message === kept ? [reason] : []))

  folder.replaceOne('cert', 'self-signed.pem')
  expect((await gateway.logged(kept))['reason']).toContain('does not belong to the certificate')
  folder.replaceOne('cert', 'make.sh')
  expect((await gateway.logged(kept, 2))['reason']).toContain('is not a certificate in PEM format')
  renameSync(folder.paths.key, `${folder.paths.key}.away`)
  expect((await gateway.logged(kept, 3))['reason']).toContain('cannot be read: no such file.')
  await Bun.sleep(500)
  expect(reasons()).toHaveLength(3)
  expect(await issuerAt(gateway)).toBe(issuers.localhost)

  folder.replace('self-signed')
  await eventually('it is served', async () => (await issuerAt(gateway)) === issuers['self-signed'])
})

test('a swapped symbolic link of a folder is noticed', async () => {
  const folder = temporaryFolder()
  const link = join(folder, 'current')
  const pointTo = (pair: Pair) => {
    mkdirSync(join(folder, pair))
    copyFileSync(join(fixtures, `${pair}.pem`), join(folder, pair, 'tls.crt'))
    copyFileSync(join(fixtures, `${pair}.key`), join(folder, pair, 'tls.key'))
    symlinkSync(pair, `${link}.new`)
    renameSync(`${link}.new`, link)
  }
  pointTo('localhost')
  const gateway = await start(settings({ cert: join(link, 'tls.crt'), key: join(link, 'tls.key') }))
  expect(await issuerAt(gateway)).toBe(issuers.localhost)
  pointTo('self-signed')
  await eventually('it is served', async () => (await issuerAt(gateway)) === issuers['self-signed'])
})

test.if(serverUrl !== undefined)('every worker replaces the certificate', async () => {
  const folder = certificateFolder('localhost')
  const gateway = await start(settings(folder.paths), { SLUICE_WORKERS: '2' })
  await gateway.logged('listening', 2)
  folder.replace('self-signed')
  await gateway.logged('TLS certificate reloaded', 2)
  await Bun.sleep(500)
  const seen = new Set<string>()
  for (let times = 0; times < 40; times++) seen.add(await issuerAt(gateway))
  expect([...seen]).toEqual([issuers['self-signed']])
})

test('clients below the minimum version, and with client_ca those without a certificate, are refused', async () => {
  const { paths } = certificateFolder('localhost')
  const more = `min_version = "1.3"\nclient_ca = "${join(fixtures, 'authority.pem')}"\n`
  const config = settings(paths, more)
  const gateway = await start(config, { SLUICE_METRICS_PORT: '0' })
  const own = { cert: fixture('localhost.pem'), key: fixture('localhost.key') }
  const stranger = { cert: fixture('self-signed.pem'), key: fixture('self-signed.key') }
  const answer = async (how: object) => {
    try {
      return await exchange(await handshake(gateway, how), probe)
    } catch (error) {
      return String(error)
    }
  }
  expect(await answer(own)).toContain('200 OK')
  expect(await answer({ ...own, maxVersion: 'TLSv1.2' })).not.toContain('200 OK')
  expect(await answer({})).not.toContain('200 OK')
  expect(await answer(stranger)).not.toContain('200 OK')

  const health = async (environment: Record<string, string>) => {
    const env = { ...inheritedEnvironment(), SLUICE_CONFIG: config, ...environment }
    const child = Bun.spawn([process.execPath, main, 'health'], { env, stderr: 'pipe' })
    return `${await child.exited} ${await new Response(child.stderr).text()}`
  }
  const { port } = await gateway.logged('serving metrics')
  expect(await health({ SLUICE_METRICS_PORT: String(port) })).toBe('0 ')
  expect(await health({})).toMatch(/^1 .*metrics\.port/)
})

test.each([
  ['a missing file', 'away.pem', 'localhost.key', 'cannot be read: no such file.'],
  ['a key of another certificate', 'localhost.pem', 'elsewhere.key', 'does not belong to the'],
  [
    'a file without a certificate',
    'make.sh',
    'localhost.key',
    'is not a certificate in PEM format.',
  ],
  ['a file without a key', 'localhost.pem', 'make.sh', 'is not an unencrypted private key'],
])('the start is refused with one sentence for %s', async (_, cert, key, sentence) => {
  const config = settings({ cert: join(fixtures, cert), key: join(fixtures, key) })
  const gateway = await launchGateway({ environment: { SLUICE_CONFIG: config } })
  expect(await gateway.exited).toBe(1)
  expect(gateway.stderr()).toStartWith('The TLS ')
  expect(gateway.stderr()).toContain(sentence)
  expect(gateway.stderr().trimEnd().split('\n')).toHaveLength(1)
})
