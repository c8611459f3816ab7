import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import {
  createSigningKey,
  type IdentityProvider,
  type SigningKey,
  signToken,
  signWithSecret,
  startIdentityProvider,
  unsignedToken,
} from '#test/support/identity-provider.ts'
import { answerTo, audience, claims, secret, startWorld, type World } from './world.ts'

let database: TestDatabase
let provider: IdentityProvider
let worlds: World[] = []
const rsa = createSigningKey('first')

beforeAll(async () => {
  database = await openTestDatabase()
})

afterEach(async () => {
  await Promise.all(worlds.map((world) => world.close()))
  worlds = []
  await provider?.stop()
})

afterAll(() => database.close())

async function startWithProvider(
  keys: readonly SigningKey[],
  jwt: Partial<World['config']['jwt']> = {},
): Promise<World> {
  provider = startIdentityProvider(keys)
  const { jwksUrl, issuer } = provider
  const world = await startWorld(database, { jwt: { jwksUrl, issuer, audience, ...jwt } })
  worlds.push(world)
  return world
}

describe('a token of the identity provider', () => {
  test.each(['RS256', 'ES256', 'EdDSA'] as const)('is accepted with %s', async (alg) => {
    const key = createSigningKey('the key', alg)
    const world = await startWithProvider([rsa, key])
    expect(await answerTo(world, signToken(key, { claims: claims(world) }))).toBe('accepted')
  })

  test('may name several audiences, and no key id if there is only one key', async () => {
    const world = await startWithProvider([rsa])
    const several = claims(world, { aud: ['other', audience] })
    const header = { kid: undefined }
    expect(await answerTo(world, signToken(rsa, { header, claims: several }))).toBe('accepted')
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['expired', { exp: 1_000 }, 'The token has expired.'],
    ['without expiry', { exp: undefined }, 'The token has no expiry (exp).'],
    ['with a text as expiry', { exp: 'never' }, 'The token has no expiry (exp).'],
    ['not yet valid', { nbf: 99_999_999_999 }, 'The token is not valid yet.'],
    ['issued in the future', { iat: 99_999_999_999 }, 'The token is not valid yet.'],
    ['for others', { aud: 'other' }, "The token's audience is not this service."],
    ['for nobody', { aud: undefined }, "The token's audience is not this service."],
    ['of another issuer', { iss: 'https://evil.example' }, "The token's issuer is not trusted."],
    ['of no subject', { sub: undefined }, 'The token does not name its subject (sub).'],
    ['of an empty subject', { sub: '' }, 'The token does not name its subject (sub).'],
    ['of a numeric subject', { sub: 7 }, 'The token does not name its subject (sub).'],
    ['with a NUL in its subject', { sub: 'a\0b' }, 'The token does not name its subject (sub).'],
    [
      'with an object as groups',
      { groups: { a: 1 } },
      "The token's groups are not a list of names.",
    ],
    ['with numbers as groups', { groups: [1] }, "The token's groups are not a list of names."],
    [
      'with too many groups',
      { groups: Array.from({ length: 257 }, (_, index) => `g${index}`) },
      'The token lists more than 256 groups.',
    ],
  ])('is refused when it is %s', async (_, spoiled, message) => {
    const world = await startWithProvider([rsa])
    const token = signToken(rsa, { claims: claims(world, spoiled) })
    expect(await answerTo(world, token)).toBe(`401 ${message}`)
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['jku', { jku: 'http://127.0.0.1:1/keys' }, "The token's header must not contain jku."],
    ['x5u', { x5u: 'http://127.0.0.1:1/cert' }, "The token's header must not contain x5u."],
    ['jwk', { jwk: { kty: 'oct', k: 'AA' } }, "The token's header must not contain jwk."],
    ['crit', { crit: ['exp'] }, "The token's header must not contain crit."],
    [
      'an algorithm that is not configured',
      { alg: 'PS256' },
      "The token's algorithm is not accepted.",
    ],
    ['no algorithm', { alg: undefined }, "The token's header cannot be read."],
    ['a number as key id', { kid: 7 }, "The token's header cannot be read."],
    [
      'an algorithm that is not its key’s',
      { alg: 'ES256' },
      'The token is signed with a key that the identity provider does not publish.',
    ],
  ])('is refused with %s in its header', async (_, header, message) => {
    const world = await startWithProvider([rsa])
    const token = signToken(rsa, { header, claims: claims(world) })
    expect(await answerTo(world, token)).toBe(`401 ${message}`)
  })

  test('is refused when it is signed with another key of the same id', async () => {
    const world = await startWithProvider([rsa])
    const token = signToken(createSigningKey('first'), { claims: claims(world) })
    expect(await answerTo(world, token)).toBe("401 The token's signature is not valid.")
  })

  test('is refused when a claim was changed after signing', async () => {
    const world = await startWithProvider([rsa])
    const [header, , signature] = signToken(rsa, { claims: claims(world) }).split('.')
    const [, payload] = signToken(rsa, { claims: claims(world, { sub: 'root' }) }).split('.')
    const forged = [header, payload, signature].join('.')
    expect(await answerTo(world, forged)).toBe("401 The token's signature is not valid.")
  })

  test('is refused when it is unsigned', async () => {
    const world = await startWithProvider([rsa])
    for (const alg of ['none', 'None', 'NONE', 'nOnE']) {
      const token = unsignedToken({ header: { alg }, claims: claims(world) })
      expect(await answerTo(world, token)).toBe("401 The token's algorithm is not accepted.")
    }
  })

  test('is refused when the public key was used as an HMAC secret', async () => {
    const world = await startWithProvider([rsa])
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })
    const der = rsa.publicKey.export({ type: 'spki', format: 'der' })
    for (const alg of ['HS256', 'RS256']) {
      for (const key of [String(pem), der]) {
        const header = { alg, kid: 'first' }
        const token = signWithSecret(key, { header, claims: claims(world) })
        expect(await answerTo(world, token)).toStartWith('401 ')
      }
    }
  })

  test('is refused when it is too long or not JSON', async () => {
    const world = await startWithProvider([rsa])
    const long = signToken(rsa, { claims: claims(world, { pad: 'x'.repeat(13_000) }) })
    // Not over HTTP, where the limit of all headers comes first.
    await expect(world.auth.authenticateToken(long)).rejects.toThrow('longer than 16384 bytes')
    expect(await answerTo(world, 'YQ.YQ.YQ')).toBe("401 The token's header cannot be read.")
    expect(await answerTo(world, '..')).toBe("401 The token's header cannot be read.")
  })

  test('works beside an identity provider, each with its own algorithm', async () => {
    const world = await startWithProvider([rsa], { secret })
    expect(await answerTo(world, signToken(rsa, { claims: claims(world) }))).toBe('accepted')
    expect(await answerTo(world, signWithSecret(secret, { claims: claims(world) }))).toBe(
      'accepted',
    )
    const pem = String(rsa.publicKey.export({ type: 'spki', format: 'pem' }))
    const forged = signWithSecret(pem, { claims: claims(world) })
    expect(await answerTo(world, forged)).toBe("401 The token's signature is not valid.")
  })
})

describe('the keys of the identity provider', () => {
  const second = createSigningKey('second')

  test('may rotate without a restart, and a removed key is refused immediately', async () => {
    const world = await startWithProvider([rsa])
    const old = signToken(rsa, { claims: claims(world) })
    expect(await answerTo(world, old)).toBe('accepted')
    provider.publish([second])
    expect(await answerTo(world, signToken(second, { claims: claims(world) }))).toBe('accepted')
    expect(await answerTo(world, old)).toStartWith('401 ')
  })

  test('remain valid while the provider is unreachable', async () => {
    const world = await startWithProvider([rsa])
    expect(await answerTo(world, signToken(rsa, { claims: claims(world) }))).toBe('accepted')
    await provider.goDown()
    const unknown = signToken(second, { claims: claims(world) })
    expect(await answerTo(world, unknown)).toStartWith('401 ')
    const another = signToken(rsa, { claims: claims(world, { sub: 'bob' }) })
    expect(await answerTo(world, another)).toBe('accepted')
    provider.comeUp()
  })

  test.each<[string, () => Response | Promise<Response>]>([
    ['fails', () => new Response('no', { status: 500 })],
    ['redirects', () => Response.redirect('http://127.0.0.1:1/')],
    ['answers HTML', () => new Response('<html>')],
    ['answers an empty set', () => Response.json({ keys: [] })],
    [
      'answers without end',
      () => new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(65_536)) })),
    ],
  ])('result in 503, not 401, if the provider %s from the start', async (_, answer) => {
    provider = startIdentityProvider([rsa])
    provider.answerWith(answer)
    const { jwksUrl, issuer } = provider
    const world = await startWorld(database, { jwt: { jwksUrl, issuer, audience } })
    worlds.push(world)
    const token = signToken(rsa, { claims: claims(world) })
    expect(await answerTo(world, token)).toBe(
      '503 The identity provider is unreachable, so tokens cannot be verified.',
    )
  })

  test('are fetched once the provider is available', async () => {
    provider = startIdentityProvider([rsa])
    await provider.goDown()
    const { jwksUrl, issuer } = provider
    const world = await startWorld(database, { jwt: { jwksUrl, issuer, audience } })
    worlds.push(world)
    const token = signToken(rsa, { claims: claims(world) })
    expect(await answerTo(world, token)).toStartWith('503 ')
    provider.comeUp()
    while ((await answerTo(world, token)) !== 'accepted') await Bun.sleep(50)
    expect(await answerTo(world, token)).toBe('accepted')
  })
})
