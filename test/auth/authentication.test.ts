import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createApiKey } from '#auth/key-format.ts'
import { permissionNames } from '#auth/permissions.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type Answer, startWorld, type World } from './world.ts'

let database: TestDatabase
let world: World

beforeAll(async () => {
  database = await openTestDatabase()
  world = await startWorld(database)
})

afterAll(async () => {
  await world.close()
  await database.close()
})

function expectRefusal(answer: Answer, status: number, code: string, message?: string) {
  expect(answer.status).toBe(status)
  expect(answer.body).toEqual({
    error: {
      message: message ?? expect.any(String),
      type: status === 401 ? 'authentication_error' : 'permission_error',
      param: null,
      code,
    },
  })
}

describe('credentials', () => {
  test('a JWT is accepted as a bearer token', async () => {
    const answer = await world.send('/who', { bearer: world.token('ann', ['users']) })
    expect(answer.body).toEqual({
      userId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-8/),
      subject: 'ann',
      name: null,
      groups: ['users'],
      permissions: ['can_access_api'],
      credential: { kind: 'jwt' },
    })
  })

  test('an API key authenticates its owner, in either header', async () => {
    const { id, key } = await world.makeKey('bob', ['admins'])
    const byBearer = await world.send('/who', { bearer: key })
    const byHeader = await world.send('/who', { headers: { 'x-api-key': key } })
    expect(byBearer.body).toEqual({
      userId: expect.any(String),
      subject: 'bob',
      name: null,
      groups: ['admins'],
      permissions: [...permissionNames].sort(),
      credential: {
        ...{ kind: 'api-key', keyId: id },
        ...{ models: null, scopes: null, allowedIps: null, limits: null },
      },
    })
    expect(byHeader.body).toEqual(byBearer.body)
  })

  test('X-Api-Key takes precedence over Authorization, even if it is invalid', async () => {
    const { key } = await world.makeKey('cleo', ['users'])
    const good = world.token('dan', ['users'])
    const both = await world.send('/who', { bearer: good, headers: { 'x-api-key': key } })
    expect(both.body).toMatchObject({ subject: 'cleo' })
    const bad = await world.send('/who', {
      bearer: good,
      headers: { 'x-api-key': createApiKey() },
    })
    expectRefusal(bad, 401, 'invalid_api_key')
    const badBearer = await world.send('/who', { bearer: 'x', headers: { 'x-api-key': key } })
    expect(badBearer.body).toMatchObject({ subject: 'cleo' })
  })

  test('the scheme may be written in any case', async () => {
    const authorization = `bEARER ${world.token('ann', ['users'])}`
    expect((await world.send('/who', { headers: { authorization } })).status).toBe(200)
  })

  test.each<[string, Record<string, string>, string]>([
    ['nothing', {}, 'missing_credentials'],
    ['an empty Authorization', { authorization: '' }, 'missing_credentials'],
    ['a scheme without a credential', { authorization: 'Bearer' }, 'missing_credentials'],
    ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }, 'missing_credentials'],
    ['a bare token', { authorization: 'a.b.c' }, 'missing_credentials'],
    ['an empty key', { 'x-api-key': '' }, 'missing_credentials'],
    ['a JWT as a key', { 'x-api-key': 'a.b.c' }, 'invalid_api_key'],
    ['two keys', { 'x-api-key': `${createApiKey()}, ${createApiKey()}` }, 'invalid_api_key'],
    ['a key with a tail', { 'x-api-key': `${createApiKey()}x` }, 'invalid_api_key'],
    ['a half key', { authorization: 'Bearer sk-svc-v1-abc' }, 'invalid_api_key'],
    ['a key nobody has', { authorization: `Bearer ${createApiKey()}` }, 'invalid_api_key'],
  ])('%s is refused with 401', async (_, headers, code) => {
    expectRefusal(await world.send('/who', { headers }), 401, code)
  })

  test.each(['no-jwt', 'one.dot', 'a.b.c.d', 'a.b.c, Bearer a.b.c', 'SK-SVC-V1-abc'])(
    'the bearer value %p gets the message of the platform gateway',
    async (bearer) => {
      const answer = await world.send('/who', { bearer })
      expectRefusal(
        answer,
        401,
        'invalid_token',
        'Jwt is not in the form of Header.Payload.Signature',
      )
    },
  )

  test('a refusal never quotes the credential', async () => {
    const key = createApiKey()
    const { body } = await world.send('/who', { bearer: key })
    expect(JSON.stringify(body)).not.toContain(key.slice(10))
    for (const bearer of [`${key}x`, `x${key}`, `${key}.${key}.${key}`]) {
      const refusal = await world.send('/who', { bearer })
      expect(refusal.status).toBe(401)
      expect(JSON.stringify(refusal.body)).not.toContain(key.slice(10, 30))
    }
  })
})

describe('a platform before 1.2.1', () => {
  test('refuses API keys in Authorization and accepts them in X-Api-Key', async () => {
    const { key } = await world.makeKey('eve', ['users'])
    const old = await startWorld(database, { platformVersion: '1.2.0' })
    const byBearer = await old.send('/who', { bearer: key })
    expectRefusal(
      byBearer,
      401,
      'invalid_token',
      'Jwt is not in the form of Header.Payload.Signature',
    )
    const byHeader = await old.send('/who', { headers: { 'x-api-key': key } })
    expect(byHeader.body).toMatchObject({ subject: 'eve' })
    const byToken = await old.send('/who', { bearer: old.token('eve', ['users']) })
    expect(byToken.status).toBe(200)
    await old.close()
  })
})

describe('permissions', () => {
  test.each(['/who', '/models', '/config', '/v1/api-keys'])(
    '%s responds 403 to groups without can_access_api',
    async (path) => {
      for (const groups of [[], ['unheard of'], ['Users']]) {
        const answer = await world.send(path, { bearer: world.token('finn', groups) })
        expectRefusal(answer, 403, 'permission_denied', 'Missing permission: can_access_api.')
      }
    },
  )

  test('a route also requires its own permission', async () => {
    const bearer = world.token('gus', ['users'])
    expectRefusal(
      await world.send('/models', { bearer }),
      403,
      'permission_denied',
      'Missing permission: can_manage_models.',
    )
    expectRefusal(await world.send('/config', { bearer }), 403, 'permission_denied')
    const admin = world.token('hal', ['admins'])
    expect((await world.send('/models', { bearer: admin })).status).toBe(200)
    expect((await world.send('/config', { bearer: admin })).status).toBe(200)
  })

  test('a permission does not include can_access_api', async () => {
    const other = await startWorld(database, { groups: { editors: ['can_edit_config'] } })
    const answer = await other.send('/config', { bearer: other.token('ida', ['editors']) })
    expectRefusal(answer, 403, 'permission_denied', 'Missing permission: can_access_api.')
    const both = await other.send('/config', { bearer: other.token('ida', ['editors', 'users']) })
    expect(both.status).toBe(200)
    await other.close()
  })

  test('configured groups are overwritten at each start, in every process', async () => {
    const bearer = world.token('jo', ['staff'])
    expect((await world.send('/who', { bearer })).status).toBe(403)
    const other = await startWorld(database, { groups: { staff: ['can_access_api'] } })
    while ((await world.send('/who', { bearer })).status !== 200) await Bun.sleep(5)
    const third = await startWorld(database, { groups: { staff: [] } })
    while ((await world.send('/who', { bearer })).status !== 403) await Bun.sleep(5)
    await other.close()
    await third.close()
  })
})

describe('a WebSocket', () => {
  const open = (path: string) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(new URL(path, world.url.href.replace('http', 'ws')))
      socket.onmessage = ({ data }) => {
        resolve(String(data))
        socket.close()
      }
      socket.onerror = () => resolve('refused')
    })

  test('authenticates with the query parameter token, a JWT or an API key', async () => {
    const byToken = await open(`/socket?token=${world.token('kim', ['users'])}`)
    expect(JSON.parse(byToken)).toMatchObject({ subject: 'kim', credential: { kind: 'jwt' } })
    const { key } = await world.makeKey('kim', ['users'])
    const byKey = await open(`/socket?token=${key}`)
    expect(JSON.parse(byKey)).toMatchObject({ subject: 'kim', credential: { kind: 'api-key' } })
  })

  test('is refused without a credential or permission', async () => {
    expect(await open('/socket')).toBe('refused')
    expect(await open('/socket?token=')).toBe('refused')
    expect(await open(`/socket?token=${createApiKey()}`)).toBe('refused')
    expect(await open(`/socket?token=${world.token('lee', [])}`)).toBe('refused')
  })

  test('other requests may not use the query parameter', async () => {
    const answer = await world.send(`/who?token=${world.token('kim', ['users'])}`)
    expectRefusal(answer, 401, 'missing_credentials')
  })

  test('authenticates a bare token', async () => {
    const principal = await world.auth.authenticateToken(world.token('mia', ['users']))
    expect(principal.subject).toBe('mia')
    await expect(world.auth.authenticateToken('')).rejects.toThrow('Send a credential')
  })
})
