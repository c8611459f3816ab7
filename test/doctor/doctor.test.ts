import { afterEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEmbeddedPlace } from '#test/support/database.ts'
import { startGatewayProcess, stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { runDoctor, runProgram } from './run-doctor.ts'

/** The doctor command: checks of this machine, and its output. */

afterEach(stopProcesses)

test('a fresh checkout passes, and the missing parts are listed', async () => {
  const { exitCode, report, finding } = await runDoctor({ environment: { JWT_SECRET: '' } })
  expect([exitCode, report.ok]).toEqual([0, true])
  expect(finding('configuration').verdict).toBe('ok')
  expect(finding('bun')).toMatchObject({ verdict: 'ok', detail: `version ${Bun.version}` })
  expect(finding('data folder').detail).toContain('created when needed')
  expect(finding('database').detail).toContain('created at the first start')
  expect(finding('tokens')).toMatchObject({ verdict: 'warn' })
  expect(finding('tokens').advice).toContain('JWT_JWKS_URL')
  expect(finding('upstreams').advice).toContain('SLUICE_UPSTREAM_URL')
  expect(finding('upstreams').advice).toContain('bun run model:install')
  expect(finding('embedding model')).toMatchObject({ verdict: 'warn' })
  expect(finding('embedding model').advice).toContain('bun run embed:install')
  expect(finding('speech engines').detail).toContain('bun run speech:install')
})

test('the text output has one line per check, with the remedy below', async () => {
  const { stdout, exitCode } = await runProgram([], { environment: { JWT_SECRET: '' } })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^ok {4}bun +version /m)
  expect(stdout).toMatch(
    /^warn {2}tokens +a development secret in the data folder\n +-> .*JWT_JWKS_URL/m,
  )
  expect(stdout).toMatch(/\n\d+ ok, \d+ warn, 0 fail, \d+ skip\n$/)
})

test('every invalid configuration key is named', async () => {
  const { exitCode, report } = await runDoctor({
    environment: { PORT: 'eighty', JWT_JWKS_URL: 'https://id.example/keys' },
    toml: 'colour = "red"\n[[upstream]]\nname = "one"\nurl = "ftp://one"\n',
  })
  expect(exitCode).toBe(1)
  const failed = report.findings.filter(({ verdict }) => verdict === 'fail')
  const details = failed.map(({ detail }) => detail).join('\n')
  for (const key of ['port (PORT)', 'JWT_ISSUER', 'JWT_AUDIENCE', 'colour', 'upstream.0.url']) {
    expect(details).toContain(key)
  }
  expect(failed.every(({ check }) => check === 'configuration')).toBe(true)
})

test('an unknown argument is a usage error', async () => {
  const { exitCode, stdout, stderr } = await runProgram(['--fix'])
  expect([exitCode, stdout]).toEqual([1, ''])
  expect(stderr).toContain('--fix')
})

test('a data folder that cannot be created fails, with a remedy', async () => {
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, '')
  const { exitCode, finding } = await runDoctor({ dataFolder: join(file, 'data') })
  expect(exitCode).toBe(1)
  expect(finding('data folder')).toMatchObject({ verdict: 'fail' })
  expect(finding('data folder').detail).toContain('cannot be created')
  expect(finding('data folder').advice).toContain('SLUICE_DATA')
  expect(finding('models folder').verdict).toBe('fail')
})

test('a data folder with a file in place of the storage fails', async () => {
  const dataFolder = temporaryFolder()
  writeFileSync(join(dataFolder, 'files'), '')
  const { complaints, finding } = await runDoctor({ dataFolder })
  expect(complaints).toContain('fail storage')
  expect(finding('data folder').verdict).toBe('ok')
})

test('a server running on the embedded database is reported and not disturbed', async () => {
  const place = await createEmbeddedPlace()
  try {
    const gateway = await startGatewayProcess({
      dataFolder: place.dataFolder,
      environment: { DATABASE_URL: '' },
    })
    const environment = { PORT: String(gateway.port()) }
    const { exitCode, finding } = await runDoctor({ dataFolder: place.dataFolder, environment })
    expect(exitCode).toBe(0)
    expect(finding('address').detail).toContain('a server is running')
    expect(finding('database lock')).toMatchObject({ verdict: 'ok' })
    expect(finding('database lock').detail).toMatch(/^(Process \d+|Another process) uses/)
    expect(finding('storage').verdict).toBe('ok')
    expect((await gateway.ask({ model: 'demo', input: 'Hello' })).status).toBe(200)
  } finally {
    await stopProcesses()
    await place.remove()
  }
})

test('a port used by another program fails', async () => {
  using other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('hello') })
  using silent = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: (socket) => void socket.end(), data() {} },
  })
  for (const { port } of [other, silent]) {
    const { exitCode, finding } = await runDoctor({ environment: { PORT: String(port) } })
    expect([exitCode, finding('address').verdict]).toEqual([1, 'fail'])
    expect(finding('address').advice).toContain('PORT')
  }
})

test('more workers than processors is a warning', async () => {
  const { finding } = await runDoctor({
    environment: { SLUICE_WORKERS: '4096', DATABASE_URL: 'postgres://127.0.0.1:1/none' },
  })
  expect(finding('workers')).toMatchObject({ verdict: 'warn' })
  expect(finding('open files (ulimit -n)').detail).toMatch(/soft (\d+|unlimited)/)
})
