import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, loadConfig } from '#config/load.ts'
import { inheritedEnvironment, temporaryFolder } from '#test/support/process.ts'

function faultsOf(environment: Record<string, string>): readonly string[] {
  try {
    loadConfig(environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
}

test.each([
  ['SLUICE_UPSTREM_URL', 'did you mean SLUICE_UPSTREAM_URL?'],
  ['SLUICE_WORKER', 'did you mean SLUICE_WORKERS?'],
  ['SLUICE_PORT', 'did you mean PORT?'],
  ['SLUICE_JWT_SECRET', 'did you mean JWT_SECRET?'],
  ['SLUICE_DATABASE_URL', 'did you mean DATABASE_URL?'],
])('%s is refused: %s', (name, suggestion) => {
  expect(faultsOf({ [name]: '2' })).toEqual([`${name}: unknown variable; ${suggestion}`])
})

test('an unknown variable that is like no other is refused without a suggestion', () => {
  expect(faultsOf({ SLUICE_ZEBRA_CROSSING: '1' })).toEqual([
    'SLUICE_ZEBRA_CROSSING: unknown variable.',
  ])
})

test('variables of Kubernetes services, of tests, and named by key_env are accepted', () => {
  const path = join(temporaryFolder(), 'sluice.toml')
  writeFileSync(
    path,
    '[[upstream]]\nname = "v"\nurl = "http://v/v1"\nkey_env = "SLUICE_VENDOR_KEY"\n',
  )
  const accepted = {
    SLUICE_CONFIG: path,
    SLUICE_VENDOR_KEY: 'k',
    SLUICE_TEST_FAST: '1',
    SLUICE_PORT: 'tcp://10.0.0.1:8080',
    SLUICE_SERVICE_HOST: '10.0.0.1',
    SLUICE_SERVICE_PORT_HTTP: '8080',
    SLUICE_PORT_8080_TCP_ADDR: '10.0.0.1',
  }
  expect(faultsOf(accepted)).toEqual([])
})

test('an unknown key of the file gets a suggestion', () => {
  const path = join(temporaryFolder(), 'sluice.toml')
  writeFileSync(path, '[stream]\nhartbeat_ms = 1000\n')
  expect(faultsOf({ SLUICE_CONFIG: path })).toEqual([
    'stream.hartbeat_ms: unknown key; did you mean heartbeat_ms?',
  ])
})

test.each(['mysql', 'mariadb', 'sqlite', 'mongodb'])('a %s database is refused', (scheme) => {
  expect(faultsOf({ DATABASE_URL: `${scheme}://root:open-sesame@db/sluice` })).toEqual([
    `database_url (DATABASE_URL): ${scheme}:// is not supported; did you mean postgres://USER:PASSWORD@HOST/DATABASE?`,
  ])
})

const program = join(import.meta.dir, '../../src/main.ts')
const commands = [
  '',
  'serve',
  'token',
  'doctor',
  'config',
  'config check',
  'health',
  'migrate',
  'backup',
  'restore',
  'mp3 install',
  'llama install',
  'model install',
  'embed install',
  'speech install',
  'voice install',
]

async function run(command: string, option: string) {
  const words = command.split(' ').filter(Boolean)
  const child = Bun.spawn([process.execPath, program, ...words, option], {
    cwd: temporaryFolder(),
    env: inheritedEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr, code }
}

describe.each(commands)('command "%s"', (command) => {
  test.each(['--help', '-h'])('prints its usage for %s', async (option) => {
    const { stdout, stderr, code } = await run(command, option)
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    expect(stdout).toStartWith('Usage: bun ')
  })

  test('refuses an unknown option with a suggestion', async () => {
    const { stdout, stderr, code } = await run(command, '--hepl')
    expect({ stdout, stderr, code }).toEqual({
      stdout: '',
      stderr: 'Unknown option --hepl; did you mean --help? See --help.\n',
      code: 1,
    })
  })
})

test('an option for what a variable sets names the variable', async () => {
  const { stderr, code } = await run('', '--port=9000')
  expect({ stderr, code }).toEqual({
    stderr: 'Unknown option --port; set the variable PORT instead.\n',
    code: 1,
  })
})

test('a second model is refused by the commands that take one', async () => {
  const { stdout, stderr, code } = await run('model install org/one', 'org/two')
  expect({ stdout, stderr, code }).toEqual({
    stdout: '',
    stderr: "Unexpected argument 'org/two'. See --help.\n",
    code: 1,
  })
})

test('an unknown command is refused with a suggestion', async () => {
  const { stdout, stderr, code } = await run('docter', '--json')
  expect({ stdout, stderr, code }).toEqual({
    stdout: '',
    stderr: 'Unknown command docter; did you mean doctor? See --help.\n',
    code: 1,
  })
})
