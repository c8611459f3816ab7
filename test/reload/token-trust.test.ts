import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Config } from '#config/schema.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type HeldUpstream, startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  createSigningKey,
  signToken,
  signWithSecret,
  startIdentityProvider,
} from '#test/support/identity-provider.ts'

/** Secrets and keys of tokens that change while the gateway runs. */

const claims = {
  iss: 'https://id.example.org',
  aud: 'sluice',
  sub: 'ann',
  groups: ['users'],
  exp: Math.floor(Date.now() / 1000) + 3_600,
}
const firstSecret = 'first'.padEnd(32, '-')
const secondSecret = 'second'.padEnd(32, '-')
const firstKey = createSigningKey('first')
const secondKey = createSigningKey('second')
const bySecret = (secret: string) => signWithSecret(secret, { claims })

let upstream: HeldUpstream
let gateway: Gateway
let initial: Config['jwt']

beforeAll(async () => {
  upstream = await startHeldUpstream()
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['held'] }],
    environment: {
      JWT_SECRET: firstSecret,
      JWT_ISSUER: claims.iss,
      JWT_AUDIENCE: claims.aud,
    },
  })
  initial = gateway.deps.config.jwt
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const change = (jwt: Partial<Config['jwt']>) =>
  gateway.deps.reload({ ...gateway.deps.config, jwt: { ...initial, ...jwt } })

const send = (token: string, path: string, body?: object) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const posted = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  return gateway.request(path, { headers, ...posted })
}

const statusesOf = async (...tokens: string[]) => {
  const answers = await Promise.all(tokens.map((token) => send(token, '/v1/me')))
  return answers.map(({ status }) => status)
}

test('a rotated secret: tokens of both are accepted until the former one is removed; a stream runs on', async () => {
  const former = bySecret(firstSecret)
  const tokens = [former, bySecret(secondSecret)]
  expect(await statusesOf(...tokens)).toEqual([200, 401])
  const asked = { model: 'held', input: 'hello', stream: true }
  const stream = await send(former, '/v1/responses', asked)
  await eventually('the stream runs', () => upstream.held() === 1)
  await change({ secret: secondSecret, formerSecret: firstSecret })
  expect(await statusesOf(...tokens)).toEqual([200, 200])
  await change({ secret: secondSecret })
  expect(await statusesOf(...tokens)).toEqual([401, 200])
  expect((await send(former, '/v1/responses', asked)).status).toBe(401)
  upstream.release()
  expect(await stream.text()).toEndWith('data: [DONE]\n\n')
  await change({})
  expect(await statusesOf(...tokens)).toEqual([200, 401])
})

test('another key set: its tokens are accepted and those of the former one refused; one that cannot be read changes nothing', async () => {
  const tokens = [firstKey, secondKey].map((key) => signToken(key, { claims }))
  const first = startIdentityProvider([firstKey])
  const second = startIdentityProvider([secondKey])
  try {
    await change({ jwksUrl: first.jwksUrl })
    expect(await statusesOf(...tokens)).toEqual([200, 401])
    await change({ jwksUrl: second.jwksUrl })
    expect(await statusesOf(...tokens)).toEqual([401, 200])
    const before = gateway.deps.config.jwt
    const unreachable = change({ jwksUrl: 'http://127.0.0.1:1/jwks' })
    await expect(unreachable).rejects.toThrow('jwt.jwks_url has no key set')
    expect(gateway.deps.config.jwt).toBe(before)
    await change({ jwksUrl: second.jwksUrl, algorithms: ['ES256'] })
    expect(await statusesOf(...tokens)).toEqual([401, 401])
    await change({})
  } finally {
    await first.stop()
    await second.stop()
  }
})
