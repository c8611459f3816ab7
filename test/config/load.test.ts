import { expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, loadConfig } from '#config/load.ts'
import { configSchema } from '#config/schema.ts'
import { redactConfig } from '#config/secrets.ts'
import { toFileKeys } from '#config/spelling.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { engineFaults } from '#speech/engines/registry.ts'

function fileWith(toml: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'sluice-config-')), 'sluice.toml')
  writeFileSync(path, toml)
  return path
}

function faultsOf(environment: Record<string, string>): readonly string[] {
  try {
    loadConfig(environment, [upstreamFaults, engineFaults])
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

test('without file and environment the documented defaults apply', () => {
  const config = loadConfig({})
  expect(config.host).toBe('127.0.0.1')
  expect(config.port).toBe(8080)
  expect(config.data).toBe('./data')
  expect(config.platformVersion).toBe('1.2.1')
  expect(config.jwt.groupsClaim).toBe('groups')
  expect(config.deadlines.totalMs).toBe(600_000)
  expect(config.retry.retriesMax).toBe(3)
  expect(config.upstream).toEqual([])
})

test('the file has snake_case keys, and the environment takes precedence', () => {
  const path = fileWith(`
    port = 9000
    log_level = "debug"
    [limits]
    request_bytes_max = 2048
    [groups]
    Staff_Members = ["can_access_api"]
    [[upstream]]
    name = "gpu"
    url = "http://127.0.0.1:8000/v1/"
    max_tokens_field = "max_completion_tokens"
    headers = { x_team = "a" }
  `)
  const config = loadConfig({ SLUICE_CONFIG: path, PORT: '9001' })
  expect(config.port).toBe(9001)
  expect(config.logLevel).toBe('debug')
  expect(config.limits.requestBytesMax).toBe(2048)
  expect(config.groups).toEqual({ Staff_Members: ['can_access_api'] })
  expect(config.upstream[0]).toMatchObject({
    name: 'gpu',
    api: 'chat',
    weight: 1,
    maxTokensField: 'max_completion_tokens',
    headers: { x_team: 'a' },
  })
})

test('the source of each value is recorded', () => {
  const path = fileWith(`
    log_level = "debug"
    [retrieval]
    k = 5
    embedding_model = "of-the-file"
  `)
  const { sources } = loadConfig({
    SLUICE_CONFIG: path,
    SLUICE_EMBEDDING_MODEL: 'of-the-environment',
    SLUICE_RERANK_TOP_N: '',
  })
  expect(sources).toEqual({
    log_level: { kind: 'file' },
    'retrieval.k': { kind: 'file' },
    'retrieval.embedding_model': { kind: 'environment', variable: 'SLUICE_EMBEDDING_MODEL' },
  })
})

test('SLUICE_UPSTREAM_URL configures an upstream without a file', () => {
  const config = loadConfig({
    SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1/v1',
    SLUICE_UPSTREAM_API: 'responses',
    SLUICE_UPSTREAM_KEY: 'secret',
  })
  expect(config.upstream).toMatchObject([
    { name: 'default', url: 'http://127.0.0.1:1/v1', api: 'responses', key: 'secret' },
  ])
})

test('one error names every invalid key, of the file and of the environment', () => {
  const path = fileWith(`
    nonsense = 1
    heartbeatMs = 5
    [limits]
    json_depth_max = "x"
    [groups]
    bad = ["can_fly"]
    [[upstream]]
    name = "a"
    url = "not a url"
    [[model]]
    name = "m"
    upstreams = ["b"]
    aliases = ["m"]
  `)
  const faults = faultsOf({
    SLUICE_CONFIG: path,
    PORT: 'abc',
    SLUICE_WORKERS: '2',
    JWT_JWKS_URL: 'x',
    SLUICE_SEAL_KEYS: `${'long-enough-'.repeat(3)},too-short`,
  })
  for (const name of [
    'nonsense',
    'heartbeat_ms',
    'limits.json_depth_max',
    'groups.bad.0',
    'port (PORT)',
    'workers (SLUICE_WORKERS)',
    'jwt.issuer',
    'jwt.audience',
    'jwt.jwks_url',
    'seal_keys (SLUICE_SEAL_KEYS)',
    'upstream.0.url',
    'model.0.upstreams',
    'model.0: the name "m"',
  ]) {
    expect(
      faults.filter((fault) => fault.startsWith(name)),
      name,
    ).toHaveLength(1)
  }
})

test('a named file that is missing or not TOML is refused', () => {
  expect(faultsOf({ SLUICE_CONFIG: '/nowhere/sluice.toml' })[0]).toContain('no such file')
  expect(faultsOf({ SLUICE_CONFIG: fileWith('port = = 1') })[0]).toContain('not valid TOML')
})

test('key_env reads the credential from a variable and refuses an unset one', () => {
  const path = fileWith(`
    [[upstream]]
    name = "a"
    url = "http://127.0.0.1:1/v1"
    key_env = "MY_KEY"
  `)
  expect(loadConfig({ SLUICE_CONFIG: path, MY_KEY: 'k' }).upstream[0]?.key).toBe('k')
  expect(faultsOf({ SLUICE_CONFIG: path })[0]).toContain('MY_KEY is not set')
})

test('the printed configuration contains no secret', () => {
  const path = fileWith(`
    [[upstream]]
    name = "a"
    url = "http://127.0.0.1:1/v1"
    headers = { authorization = "s3cret-header" }
  `)
  const config = loadConfig({
    SLUICE_CONFIG: path,
    DATABASE_URL: 'postgres://u:s3cret-db@h/d',
    JWT_SECRET: 's3cret-jwt-0123456789012345678901234',
    SLUICE_KEY_PEPPER: 's3cret-pepper-0123',
    SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1/v1',
    SLUICE_UPSTREAM_KEY: 's3cret-key',
  })
  const printed = JSON.stringify(toFileKeys(configSchema, redactConfig(config)))
  expect(printed).not.toContain('s3cret')
  expect(printed).toContain('"database_url":"[redacted]"')
  expect(printed).toContain('"heartbeat_ms":15000')
})

test('every key has a description', () => {
  const silent: string[] = []
  const visit = (schema: unknown, path: string) => {
    if (typeof schema !== 'object' || schema === null || !('properties' in schema)) return
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (!property.description) silent.push(path + name)
      visit(property, `${path}${name}.`)
      visit(property.items, `${path}${name}.`)
    }
  }
  visit(configSchema, '')
  expect(silent).toEqual([])
})

test('one upstream of any protocol needs no file, and each protocol has its defaults', () => {
  const [upstream] = loadConfig({
    SLUICE_UPSTREAM_URL: 'http://127.0.0.1:8000',
    SLUICE_UPSTREAM_API: 'messages',
  }).upstream
  expect(upstream).toMatchObject({
    api: 'messages',
    keyHeader: 'x-api-key',
    thinking: 'budget',
    outputFormat: false,
    defaultMaxTokens: 32_000,
  })
  const unknown = { SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1', SLUICE_UPSTREAM_API: 'grpc' }
  expect(faultsOf(unknown)).toEqual([
    'upstream.0.api: expected one of chat, responses, messages, demo, llama, onnx, flite.',
  ])
})

test.each([
  ['short', false],
  ['x'.repeat(31), false],
  ['x'.repeat(32), true],
  // 16 characters of two bytes each.
  ['é'.repeat(16), true],
  ['é'.repeat(15), false],
])('a JWT secret %p of fewer than 32 bytes is refused', (secret, isAccepted) => {
  const faults = faultsOf({ JWT_SECRET: secret })
  const expected = 'jwt.secret (JWT_SECRET): at least 32 bytes are required.'
  expect(faults).toEqual(isAccepted ? [] : [expected])
})

test.each(['1.2.0', '1.2.1'] as const)('the platform release %p is accepted', (release) => {
  expect(loadConfig({ PLATFORM_VERSION: release }).platformVersion).toBe(release)
})

test.each(['1.1.9', '1.2.2', '1.3.0', '2.0.0', '1.2', 'latest'])(
  'the platform release %p, which is not implemented, is refused',
  (release) => {
    expect(faultsOf({ PLATFORM_VERSION: release })).toEqual([
      expect.stringContaining('(PLATFORM_VERSION): expected one of 1.2.1, 1.2.0.'),
    ])
  },
)

test('clocks may differ by a minute at most', () => {
  const file = (seconds: number) => fileWith(`[jwt]\nclock_skew_s = ${seconds}\n`)
  expect(faultsOf({ SLUICE_CONFIG: file(60) })).toEqual([])
  expect(faultsOf({ SLUICE_CONFIG: file(61) }).join()).toStartWith('jwt.clock_skew_s: ')
})

test.each(['translations', 'jwt', 'limits', 'stream', 'groups'])(
  'a section %s that is no table is a fault',
  (section) => {
    for (const value of ['1', '"a"', 'true', '[]']) {
      const faults = faultsOf({ SLUICE_CONFIG: fileWith(`${section} = ${value}\n`) })
      expect(faults.join(), value).toContain(`${section}: `)
    }
  },
)

test('a table where a list belongs is a fault', () => {
  const faults = faultsOf({ SLUICE_CONFIG: fileWith('upstream = {}\njwt.algorithms = {}\n') })
  expect(faults.join()).toContain('upstream: expected array.')
  expect(faults.join()).toContain('jwt.algorithms: expected array.')
})
