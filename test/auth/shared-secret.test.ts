import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import {
  createSigningKey,
  signToken,
  signWithSecret,
  unsignedToken,
} from '#test/support/identity-provider.ts'
import { answerTo, audience, claims, secret, startWorld, type World } from './world.ts'

let database: TestDatabase
let worlds: World[] = []
const rsa = createSigningKey('first')

beforeAll(async () => {
  database = await openTestDatabase()
})

afterEach(async () => {
  await Promise.all(worlds.map((world) => world.close()))
  worlds = []
})

afterAll(() => database.close())

async function startWithSecret(jwt: Partial<World['config']['jwt']> = {}): Promise<World> {
  const world = await startWorld(database, { jwt: { secret, ...jwt } })
  worlds.push(world)
  return world
}

describe('a token under a shared secret', () => {
  test('is accepted with HS256 only', async () => {
    const world = await startWithSecret()
    expect(await answerTo(world, signWithSecret(secret, { claims: claims(world) }))).toBe(
      'accepted',
    )
    const header = { alg: 'HS512' }
    const other = signWithSecret(secret, { header, claims: claims(world) })
    expect(await answerTo(world, other)).toBe("401 The token's algorithm is not accepted.")
    const foreign = signWithSecret('another secret', { claims: claims(world) })
    expect(await answerTo(world, foreign)).toBe("401 The token's signature is not valid.")
    const unsigned = unsignedToken({ claims: claims(world) })
    expect(await answerTo(world, unsigned)).toBe("401 The token's algorithm is not accepted.")
    const asymmetric = signToken(rsa, { claims: claims(world) })
    expect(await answerTo(world, asymmetric)).toBe("401 The token's algorithm is not accepted.")
  })

  test('must match the configured issuer and audience', async () => {
    const world = await startWithSecret({ issuer: 'https://idp.example', audience })
    const given = (spoiled: Record<string, unknown>) =>
      answerTo(world, signWithSecret(secret, { claims: claims(world, spoiled) }))
    expect(await given({})).toBe('accepted')
    expect(await given({ aud: 'x' })).toBe("401 The token's audience is not this service.")
    expect(await given({ iss: 'x' })).toContain("401 The token's issuer")
  })

  test('expires, even after it was accepted', async () => {
    const world = await startWithSecret()
    const token = signWithSecret(secret, { claims: claims(world) })
    expect(await answerTo(world, token)).toBe('accepted')
    world.pass(640_000)
    expect(await answerTo(world, token)).toBe('401 The token has expired.')
  })

  test('is accepted within the configured clock skew, and not beyond', async () => {
    const world = await startWithSecret({ clockSkewS: 30 })
    const nowS = Math.floor(world.now().getTime() / 1000)
    const given = (spoiled: Record<string, unknown>) =>
      answerTo(world, signWithSecret(secret, { claims: claims(world, spoiled) }))
    expect(await given({ exp: nowS - 20 })).toBe('accepted')
    expect(await given({ nbf: nowS + 20 })).toBe('accepted')
    expect(await given({ iat: nowS + 20 })).toBe('accepted')
    expect(await given({ exp: nowS - 40 })).toBe('401 The token has expired.')
    expect(await given({ nbf: nowS + 60 })).toBe('401 The token is not valid yet.')
    expect(await given({ iat: nowS + 60 })).toBe('401 The token is not valid yet.')
  })

  test('may have one group as a string, or none', async () => {
    const world = await startWithSecret({ groupsClaim: 'https://idp.example/roles' })
    const given = async (groups: unknown) => {
      const spoiled = { 'https://idp.example/roles': groups, groups: ['admins'] }
      const bearer = signWithSecret(secret, { claims: claims(world, spoiled) })
      const { body } = await world.send('/who', { bearer })
      return Object(body).groups
    }
    expect(await given('users')).toEqual(['users'])
    expect(await given(['users', 'staff', 'users'])).toEqual(['staff', 'users'])
    expect(await given(undefined)).toBeUndefined()
  })
})
