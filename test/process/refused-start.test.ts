import { afterEach, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createEmbeddedPlace } from '#test/support/database.ts'
import {
  childrenOf,
  launchGateway,
  type ProcessOptions,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'

afterEach(stopProcesses)

/** The exit code and the message for the operator, which is never a stack trace. */
async function refusal(options: ProcessOptions) {
  const gateway = await launchGateway(options)
  const code = await gateway.exited
  const said = gateway.stderr() + gateway.stdout()
  expect(said).not.toMatch(/^\s+at /m)
  return { code, said, sentence: gateway.stderr() }
}

/** A port that another process listens on until the end of the test. */
async function withTakenPort(use: (port: number) => Promise<void>): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  try {
    await use(typeof address === 'object' && address !== null ? address.port : 0)
  } finally {
    server.close()
  }
}

test('an invalid configuration is refused with one message that names every invalid key', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'sluice.toml'), '[stream]\nheartbeat_ms = "soon"\ncolour = "blue"\n')
  const { code, said, sentence } = await refusal({
    dataFolder: folder,
    environment: {
      SLUICE_CONFIG: join(folder, 'sluice.toml'),
      PORT: '99999',
      LOG_LEVEL: 'loud',
      SLUICE_WORKERS: '2',
      DATABASE_URL: '',
      SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1',
      SLUICE_UPSTREAM_API: 'grpc',
    },
  })
  expect(code).toBe(1)
  for (const key of ['PORT', 'LOG_LEVEL', 'stream.heartbeat_ms', 'stream.colour', 'workers']) {
    expect(sentence).toContain(key)
  }
  expect(sentence).toContain('upstream.0.api: expected one of chat, responses')
  expect(said.match(/configuration is not valid/g)).toHaveLength(1)
})

test('a data folder in use by another gateway is refused, and that gateway continues', async () => {
  const place = await createEmbeddedPlace()
  try {
    const first = await startGatewayProcess({ dataFolder: place.dataFolder })
    const { code, sentence } = await refusal({ dataFolder: place.dataFolder })
    expect(code).toBe(1)
    const [, pid] = /is in use by process (\d+)\.\n$/.exec(sentence) ?? []
    expect(childrenOf(first.pid)).toContain(Number(pid))
    expect((await first.request('/v1/models')).status).toBe(200)
  } finally {
    await stopProcesses()
    await place.remove()
  }
})

test('a port in use is refused before anything is created', async () => {
  await withTakenPort(async (port) => {
    const dataFolder = temporaryFolder()
    const { code, sentence } = await refusal({ dataFolder, environment: { PORT: String(port) } })
    expect(code).toBe(1)
    expect(readdirSync(dataFolder)).toEqual([])
    expect(sentence).toBe(`Cannot listen on 127.0.0.1:${port}: it is in use by another process.\n`)
  })
})

test('an address that this machine does not have is refused', async () => {
  const { code, sentence } = await refusal({ environment: { HOST: '192.0.2.1' } })
  expect(code).toBe(1)
  expect(sentence).toContain('Cannot listen on 192.0.2.1:0:')
})

test('an unreachable database is refused without printing its password', async () => {
  const { code, said, sentence } = await refusal({
    dataFolder: temporaryFolder(),
    environment: { DATABASE_URL: 'postgres://sluice:open-sesame@127.0.0.1:1/sluice' },
  })
  expect(code).toBe(1)
  expect(sentence).toMatch(/^PostgreSQL at 127\.0\.0\.1:1 cannot be used: .+\n$/)
  expect(said).not.toContain('open-sesame')
})

test('a data folder that cannot be created is refused', async () => {
  const file = join(temporaryFolder(), 'a-file')
  writeFileSync(file, '')
  for (const JWT_SECRET of ['', 'a-secret-for-tests-of-at-least-32-characters']) {
    const { code, sentence } = await refusal({ dataFolder: file, environment: { JWT_SECRET } })
    expect(code).toBe(1)
    expect(sentence).toContain(file)
    expect(sentence.trimEnd()).not.toContain('\n')
  }
})
