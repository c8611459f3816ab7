import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { startWorld, type World } from './world.ts'

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

const path = '/v1/api-keys'
const user = (subject: string) => world.token(subject, ['users'])
const admin = () => world.token('root', ['admins'])

const change = (bearer: string, id: string, json: unknown) =>
  world.send(`${path}/${id}`, { method: 'PATCH', bearer, json })
const rotate = (bearer: string, id: string, json?: unknown) =>
  world.send(`${path}/${id}/rotate`, { method: 'POST', bearer, json })
const credentialOf = async (bearer: string) =>
  Object((await world.send('/who', { bearer })).body).credential

/** The newest audit entry of a key. */
async function newestEntry(id: string) {
  const [row] = await database.drizzle.execute<{ entry: string }>(
    `select json_build_object('action', action, 'actor', actor_id, 'changes', changes)::text as entry
     from audit_entry where resource_id = '${id}' order by id desc limit 1`,
  )
  const { changes, ...entry } = JSON.parse(row?.entry ?? '{}')
  return { ...entry, changes: typeof changes === 'string' ? JSON.parse(changes) : changes }
}

describe('the rights of a key', () => {
  const rights = { models: ['gpt-*', 'llama'], scopes: ['inference', 'files'], limits: null }
  const limits = { requests_per_minute: 60 }

  test('are stored, listed and on its principal', async () => {
    const given = { ...rights, limits }
    const { id, key } = await world.makeKey('ann', ['users'], given)
    expect(await credentialOf(key)).toEqual({
      kind: 'api-key',
      keyId: id,
      allowedIps: null,
      ...given,
    })
    const { body } = await world.send(path, { bearer: user('ann') })
    expect(Object(body).data[0]).toMatchObject({ id, user_id: userIdOf('ann'), ...given })
    expect(await newestEntry(id)).toMatchObject({
      action: 'api_key.create',
      changes: { before: null, after: { name: 'k', expires_at: null, ...given } },
    })
  })

  test('change at once, and the audit log has the changed fields before and after', async () => {
    const { id, key } = await world.makeKey('ben', ['users'], rights)
    expect(await credentialOf(key)).toMatchObject(rights)
    const changed = { models: ['llama'], scopes: null, name: 'renamed' }
    expect(await change(user('ben'), id, { ...changed, limits })).toMatchObject({
      status: 200,
      body: { id, ...changed, limits },
    })
    expect(await credentialOf(key)).toMatchObject({ models: ['llama'], scopes: null })
    expect(await newestEntry(id)).toEqual({
      action: 'api_key.update',
      actor: userIdOf('ben'),
      changes: {
        before: { name: 'k', ...rights },
        after: { ...changed, limits },
      },
    })
  })

  test('include an expiry that can be moved and removed', async () => {
    const { id, key } = await world.makeKey('cara', ['users'])
    const expiry = new Date(world.now().getTime() + 60_000).toISOString()
    expect((await change(user('cara'), id, { expires_at: expiry })).body).toMatchObject({
      expires_at: expiry,
    })
    world.pass(61_000)
    expect((await world.send('/who', { bearer: key })).status).toBe(401)
    await change(user('cara'), id, { expires_at: null })
    expect((await world.send('/who', { bearer: key })).status).toBe(200)
  })

  test.each([
    ['models', [], 'unprocessable'],
    ['models', ['a', ''], 'unprocessable'],
    ['models', Array.from({ length: 101 }, (_, index) => `m${index}`), 'unprocessable'],
    ['models', ['x'.repeat(257)], 'unprocessable'],
    ['models', ['a\0'], 'unprocessable'],
    ['models', 'a', 'unprocessable'],
    ['scopes', [], 'unprocessable'],
    ['scopes', ['everything'], 'unprocessable'],
    ['limits', 7, 'unprocessable'],
    ['limits', { requests_per_minute: -1 }, 'unprocessable'],
    ['limits', { requests_per_hour: 1 }, 'unknown_field'],
    ['name', null, 'unprocessable'],
    ['expires_at', 'soon', 'unprocessable'],
    ['user_id', 'x', 'unknown_field'],
  ])('refuse %s = %j with 422', async (field, value, code) => {
    const { id } = await world.makeKey('dan', ['users'])
    const refused = { status: 422, body: { error: { code, param: expect.stringMatching(field) } } }
    expect(await change(user('dan'), id, { [field]: value })).toMatchObject(refused)
    const json = { name: 'k', [field]: value }
    const created = await world.send(path, { method: 'POST', bearer: user('dan'), json })
    expect(created).toMatchObject(refused)
  })

  test('cannot be changed, nor the secret replaced, with an API key', async () => {
    const { id, key } = await world.makeKey('eve', ['admins'], { models: ['a'] })
    for (const answer of [await change(key, id, { models: null }), await rotate(key, id)]) {
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'jwt_required' } } })
    }
  })
})

describe('POST /v1/api-keys/{id}/rotate', () => {
  test('makes a new secret of the same key; the old one works during the overlap', async () => {
    const given = { models: ['m'], scopes: ['inference'] }
    const { id, key: old } = await world.makeKey('fay', ['users'], given)
    expect(await credentialOf(old)).toMatchObject({ keyId: id })
    const { status, body, headers } = await rotate(user('fay'), id, { overlap_seconds: 60 })
    const { key, masked, rotated_at, previous_expires_at } = Object(body)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(key).not.toBe(old)
    expect(Object(body)).toMatchObject({ id, name: 'k', ...given })
    expect(Date.parse(previous_expires_at) - Date.parse(rotated_at)).toBe(60_000)
    for (const secret of [old, key]) {
      expect(await credentialOf(secret)).toMatchObject({ keyId: id, ...given })
    }
    world.pass(61_000)
    expect(await world.send('/who', { bearer: old })).toMatchObject({
      status: 401,
      body: {
        error: { code: 'invalid_api_key', message: 'This API key was replaced by its rotation.' },
      },
    })
    expect(await credentialOf(key)).toMatchObject({ keyId: id })
    expect(await newestEntry(id)).toEqual({
      action: 'api_key.rotate',
      actor: userIdOf('fay'),
      changes: {
        before: { name: 'k', user_id: userIdOf('fay'), masked: expect.any(String) },
        after: { masked, previous_expires_at },
      },
    })
  })

  test('without an overlap ends the old secret at once, by default after a day', async () => {
    const { id, key: first } = await world.makeKey('gus', ['users'])
    expect((await world.send('/who', { bearer: first })).status).toBe(200)
    const { key: second } = Object((await rotate(user('gus'), id, { overlap_seconds: 0 })).body)
    expect((await world.send('/who', { bearer: first })).status).toBe(401)
    await rotate(user('gus'), id)
    world.pass(86_000_000)
    expect((await world.send('/who', { bearer: second })).status).toBe(200)
    world.pass(401_000)
    expect((await world.send('/who', { bearer: second })).status).toBe(401)
  })

  test('a second rotation ends the first secret: two work at most', async () => {
    const { id, key: first } = await world.makeKey('hal', ['users'])
    const { key: second } = Object((await rotate(user('hal'), id)).body)
    expect((await world.send('/who', { bearer: first })).status).toBe(200)
    const { key: third } = Object((await rotate(user('hal'), id)).body)
    expect((await world.send('/who', { bearer: first })).status).toBe(401)
    for (const bearer of [second, third]) {
      expect((await world.send('/who', { bearer })).status).toBe(200)
    }
  })

  test('revoking the key revokes both secrets', async () => {
    const { id, key: old } = await world.makeKey('ira', ['users'])
    const { key } = Object((await rotate(user('ira'), id)).body)
    await world.send(`${path}/${id}`, { method: 'DELETE', bearer: user('ira') })
    for (const bearer of [old, key]) {
      expect((await world.send('/who', { bearer })).status).toBe(401)
    }
    expect((await rotate(user('ira'), id)).status).toBe(404)
  })

  test.each([-1, 2_592_001, 1.5, '60'])('refuses an overlap of %j', async (overlap_seconds) => {
    const { id } = await world.makeKey('joe', ['users'])
    expect(await rotate(user('joe'), id, { overlap_seconds })).toMatchObject({
      status: 422,
      body: { error: { param: 'overlap_seconds' } },
    })
  })

  test('is for the owner alone: an administrator would get a secret of another user', async () => {
    const { id } = await world.makeKey('kay', ['users'])
    expect((await rotate(admin(), id)).status).toBe(404)
    expect((await rotate(user('mallory'), id)).status).toBe(404)
  })
})

describe('an administrator', () => {
  test('lists the keys of a user and of everyone, in pages', async () => {
    const own = await world.makeKey('root', ['admins'])
    const { id } = await world.makeKey('lea', ['users'])
    const ids = async (query: string) => {
      const { body } = await world.send(`${path}${query}`, { bearer: admin() })
      return Object(body).data.map((key: { id: string }) => key.id)
    }
    expect(await ids('')).toEqual([own.id])
    expect(await ids(`?user_id=${userIdOf('lea')}`)).toEqual([id])
    expect(await ids('?user_id=all&limit=2')).toEqual([id, own.id])
    expect(await ids(`?user_id=all&after=${id}&limit=1`)).toEqual([own.id])
  })

  test('changes and revokes the key of a user', async () => {
    const { id, key } = await world.makeKey('mia', ['users'])
    expect((await change(admin(), id, { models: ['a'] })).status).toBe(200)
    expect(await credentialOf(key)).toMatchObject({ models: ['a'] })
    expect(await newestEntry(id)).toMatchObject({ actor: userIdOf('root') })
    const removed = await world.send(`${path}/${id}`, { method: 'DELETE', bearer: admin() })
    expect(removed.status).toBe(200)
    expect((await world.send('/who', { bearer: key })).status).toBe(401)
  })

  test('must have can_manage_groups', async () => {
    const { id } = await world.makeKey('ned', ['users'])
    const all = await world.send(`${path}?user_id=all`, { bearer: user('mallory') })
    expect(all).toMatchObject({
      status: 403,
      body: {
        error: { code: 'permission_denied', message: 'Missing permission: can_manage_groups.' },
      },
    })
    const foreign = await world.send(`${path}?user_id=${userIdOf('ned')}`, {
      bearer: user('mallory'),
    })
    expect(foreign.status).toBe(403)
    const own = await world.send(`${path}?user_id=${userIdOf('ned')}`, { bearer: user('ned') })
    expect(own.status).toBe(200)
    const changed = await change(user('mallory'), id, { models: ['a'] })
    expect(changed).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  })

  test('has no key that outlives its revocation, expiry, rotation or owner', async () => {
    const expiresAt = new Date(world.now().getTime() + 60_000).toISOString()
    const root = () => world.token('old', ['admins'])
    const endings: [string, (id: string) => Promise<unknown>][] = [
      ['revoked', (id) => world.send(`${path}/${id}`, { method: 'DELETE', bearer: root() })],
      ['expired', async () => world.pass(61_000)],
      ['replaced', (id) => rotate(root(), id, { overlap_seconds: 0 })],
      [
        'disabled',
        async () => {
          await database.drizzle.execute(
            `update app_user set disabled_at = now() where id = '${userIdOf('old')}'`,
          )
          await world.auth.changes.apply({ what: 'user', id: userIdOf('old') })
        },
      ],
    ]
    for (const [word, end] of endings) {
      const fields = word === 'expired' ? { expires_at: expiresAt } : {}
      const { id, key } = await world.makeKey('old', ['admins'], fields)
      for (const place of ['/who', '/config', '/models']) {
        expect((await world.send(place, { bearer: key })).status).toBe(200)
      }
      await end(id)
      for (const place of ['/who', '/config', '/models']) {
        const { status, body } = await world.send(place, { bearer: key })
        expect([status, Object(body).error?.message], word).toEqual([
          401,
          expect.stringContaining(word),
        ])
      }
    }
  })

  test('gets 422 for a user id that is none', async () => {
    expect(await world.send(`${path}?user_id=x`, { bearer: admin() })).toMatchObject({
      status: 422,
      body: { error: { param: 'user_id' } },
    })
  })
})
