import { afterEach, expect, test } from 'bun:test'
import { createSigningKey, startIdentityProvider } from '#test/support/identity-provider.ts'
import { stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { s3Settings } from '#test/support/s3-server.ts'
import { runDoctor } from './run-doctor.ts'

/** The doctor: key sets of identity providers, and object storage. */

afterEach(stopProcesses)

const withKeys = (jwksUrl: string, more: Record<string, string> = {}) => ({
  JWT_SECRET: '',
  JWT_JWKS_URL: jwksUrl,
  JWT_ISSUER: 'https://id.example',
  JWT_AUDIENCE: 'sluice',
  ...more,
})
const check = 'token keys (JWKS)'

test('the keys of an identity provider are counted by their use, and a secret beside them is named by its length', async () => {
  const provider = startIdentityProvider([
    createSigningKey('one'),
    createSigningKey('two', 'ES256'),
  ])
  const secret = 'b'.repeat(40)
  const both = await runDoctor({ environment: withKeys(provider.jwksUrl) })
  expect(both.finding(check)).toMatchObject({ verdict: 'ok' })
  expect(both.finding(check).detail).toContain('2 keys, 2 usable with RS256')
  const none = await runDoctor({
    environment: withKeys(provider.jwksUrl, { JWT_SECRET: secret }),
    toml: '[jwt]\nalgorithms = ["EdDSA"]\n',
  })
  expect([none.exitCode, none.finding(check).verdict]).toEqual([1, 'fail'])
  expect(none.finding(check).advice).toContain('jwt.algorithms')
  expect(none.finding('token secret')).toMatchObject({ verdict: 'ok', detail: '40 bytes' })
  expect(none.stdout).not.toContain(secret)
  await provider.stop()
})

test('an unreachable identity provider, or one without keys, fails', async () => {
  const provider = startIdentityProvider([createSigningKey('one')])
  provider.answerWith(() => Response.json({ keys: [] }))
  const empty = await runDoctor({ environment: withKeys(`${provider.jwksUrl}?token=hush-hush`) })
  expect(empty.finding(check).detail).toContain('the key set has no keys')
  expect(empty.stdout).not.toContain('hush-hush')
  provider.answerWith(() => new Response('<html>'))
  expect((await runDoctor({ environment: withKeys(provider.jwksUrl) })).exitCode).toBe(1)
  await provider.goDown()
  const away = await runDoctor({ environment: withKeys(provider.jwksUrl) })
  expect([away.exitCode, away.finding(check).verdict]).toEqual([1, 'fail'])
  expect(away.finding(check).advice).toContain('JWT_JWKS_URL')
})

test('a host that the development secret does not allow is reported', async () => {
  const { finding } = await runDoctor({ environment: { JWT_SECRET: '', HOST: '0.0.0.0' } })
  expect(finding('tokens').detail).toContain('listens on 127.0.0.1 instead of 0.0.0.0')
})

const bucket = {
  S3_ENDPOINT: 'http://127.0.0.1:1',
  S3_BUCKET: 'documents',
  S3_ACCESS_KEY_ID: 'ann-access-key',
  S3_SECRET_ACCESS_KEY: 'ann-secret-access-key',
}

test('an unreachable storage fails, and its keys are not printed', async () => {
  const dataFolder = temporaryFolder()
  const { exitCode, finding, stdout } = await runDoctor({ dataFolder, environment: bucket })
  expect([exitCode, finding('storage').verdict]).toEqual([1, 'fail'])
  expect(finding('storage').detail).toContain('the bucket "documents" at http://127.0.0.1:1')
  expect(stdout).not.toContain('ann-')
})

test('a storage that loses writes fails', async () => {
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ method }) => new Response(null, { status: method === 'PUT' ? 200 : 404 }),
  })
  const environment = { ...bucket, S3_ENDPOINT: server.url.origin }
  const { finding } = await runDoctor({ dataFolder: temporaryFolder(), environment })
  expect(finding('storage')).toMatchObject({ verdict: 'fail' })
  expect(finding('storage').advice).toContain('S3_BUCKET')
})

test.if(s3Settings !== undefined)('a working bucket passes', async () => {
  const { endpoint, bucket: name, accessKeyId, secretAccessKey } = s3Settings ?? {}
  const { finding } = await runDoctor({
    dataFolder: temporaryFolder(),
    environment: {
      S3_ENDPOINT: endpoint ?? '',
      S3_BUCKET: name ?? '',
      S3_ACCESS_KEY_ID: accessKeyId ?? '',
      S3_SECRET_ACCESS_KEY: secretAccessKey ?? '',
    },
  })
  expect(finding('storage').verdict).toBe('ok')
})
