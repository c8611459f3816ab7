import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
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

function create(subject: string, json: unknown) {
  return world.send(path, { method: 'POST', bearer: world.token(subject, ['users']), json })
}

function list(subject: string, query = '') {
  return world.send(`${path}${query}`, { bearer: world.token(subject, ['users']) })
}

/** The further fields of a key that is restricted to nothing. */
const unrestricted = {
  user_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  models: null,
  scopes: null,
  allowed_ips: null,
  limits: null,
  rotated_at: null,
  previous_expires_at: null,
}

describe('POST /v1/api-keys', () => {
  test('responds with the key, once', async () => {
    const answer = await create('ann', { name: '  My laptop ' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const { key } = Object(answer.body)
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      name: 'My laptop',
      key: expect.stringMatching(/^sk-svc-v1-[0-9A-Za-z]{49}$/),
      masked: `sk-svc-v1-********${String(key).slice(-4)}`,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      expires_at: null,
      ...unrestricted,
    })
    expect(JSON.stringify((await list('ann')).body)).not.toContain(String(key))
  })

  test('stores nothing that reveals the key', async () => {
    const { key } = await world.makeKey('bea', ['users'])
    const rows = await database.drizzle.execute(
      'select to_jsonb(api_key)::text as row from api_key',
    )
    expect(JSON.stringify(rows)).not.toContain(key.slice(10, 40))
  })

  test('accepts an expiry, after which the key is refused', async () => {
    const expiry = new Date(world.now().getTime() + 60_000).toISOString()
    const answer = await create('ann', { name: 'short', expires_at: expiry })
    expect(answer.body).toMatchObject({ expires_at: expiry })
    const bearer = String(Object(answer.body).key)
    expect((await world.send('/who', { bearer })).status).toBe(200)
    world.pass(61_000)
    expect(await world.send('/who', { bearer })).toMatchObject({
      status: 401,
      body: { error: { code: 'invalid_api_key', message: 'This API key has expired.' } },
    })
  })

  test.each<[unknown, string, string | null, string]>([
    [[], 'unprocessable', null, 'The value must be an object.'],
    ['"text"', 'unprocessable', null, 'The value must be an object.'],
    [{}, 'unprocessable', 'name', '"name" is required.'],
    [{ name: 7 }, 'unprocessable', 'name', '"name" must be a string.'],
    [{ name: null }, 'unprocessable', 'name', '"name" must be a string.'],
    [{ name: '  ' }, 'unprocessable', 'name', '"name" must have 1 to 100 characters.'],
    [{ name: 'x'.repeat(101) }, 'unprocessable', 'name', '"name" must have 1 to 100 characters.'],
    [{ name: 'a\0b' }, 'unprocessable', 'name', '"name" must be plain text on one line.'],
    [{ name: 'a\nb' }, 'unprocessable', 'name', '"name" must be plain text on one line.'],
    ['{"name": "\\ud800"}', 'unprocessable', 'name', '"name" must be plain text on one line.'],
    [{ name: 'a', scope: 'all' }, 'unknown_field', 'scope', '"scope" is not a known field.'],
    [{ Name: 'a' }, 'unknown_field', 'Name', '"Name" is not a known field.'],
    [
      { name: 'a', expires_at: 1_900_000_000 },
      'unprocessable',
      'expires_at',
      '"expires_at" must be a string or null.',
    ],
    [
      { name: 'a', expires_at: '2001-01-01T00:00:00Z' },
      'unprocessable',
      'expires_at',
      '"expires_at" must be in the future.',
    ],
    ...[
      'tomorrow',
      '2090-01-01',
      '2090-01-01T00:00:00',
      '2090-01-01T00:00:00+02:00',
      '2090-02-30T00:00:00Z',
      '2090-13-01T00:00:00Z',
      '',
    ].map((expires_at): [unknown, string, string, string] => [
      { name: 'a', expires_at },
      'unprocessable',
      'expires_at',
      '"expires_at" must be a time in UTC such as 2030-01-31T12:00:00Z.',
    ]),
  ])('refuses %j with 422', async (json, code, param, message) => {
    expect(await create('ann', json)).toMatchObject({
      status: 422,
      body: { error: { type: 'invalid_request_error', code, param, message } },
    })
  })

  test('refuses invalid JSON with 400', async () => {
    expect(await create('ann', '{"name": ')).toMatchObject({
      status: 400,
      body: { error: { code: 'malformed_json' } },
    })
  })

  test('accepts names in any script', async () => {
    for (const name of ['Κλειδί', '鍵 🔑', 'x'.repeat(100), "Robert'); drop table api_key;--"]) {
      expect((await create('ann', { name })).body).toMatchObject({ name })
    }
  })

  test('refuses more than 100 live keys', async () => {
    const all = await Promise.all(
      Array.from({ length: 110 }, (_, index) => create('cy', { name: `key ${index}` })),
    )
    const made = all.filter(({ status }) => status === 200)
    expect(made.length).toBe(100)
    expect(all.find(({ status }) => status !== 200)).toMatchObject({
      status: 422,
      body: { error: { code: 'too_many_api_keys' } },
    })
    const { id } = Object(made[0]?.body)
    await world.send(`${path}/${id}`, { method: 'DELETE', bearer: world.token('cy', ['users']) })
    expect((await create('cy', { name: 'one more' })).status).toBe(200)
    expect((await create('cy', { name: 'too many' })).status).toBe(422)
  })
})

describe('GET /v1/api-keys', () => {
  test('lists the caller’s keys, newest first, in pages', async () => {
    const ids: string[] = []
    for (let index = 0; index < 5; index++) ids.unshift((await world.makeKey('dora', ['users'])).id)
    await world.makeKey('somebody else', ['users'])
    const first = await list('dora', '?limit=2')
    expect(first.body).toEqual({
      object: 'list',
      data: ids.slice(0, 2).map((id) => ({
        id,
        name: 'k',
        masked: expect.stringMatching(/^sk-svc-v1-\*{8}[0-9A-Za-z]{4}$/),
        created_at: expect.any(String),
        expires_at: null,
        last_used_at: null,
        ...unrestricted,
      })),
      has_more: true,
      first_id: ids[0],
      last_id: ids[1],
    })
    const second = await list('dora', `?limit=2&after=${ids[1]}`)
    expect(second.body).toMatchObject({ first_id: ids[2], last_id: ids[3], has_more: true })
    const third = await list('dora', `?limit=2&after=${ids[3]}`)
    expect(third.body).toMatchObject({ first_id: ids[4], last_id: ids[4], has_more: false })
    const all = await list('dora')
    expect(Object(all.body).data.map(({ id }: { id: string }) => id)).toEqual(ids)
  })

  test('is empty for a user without keys', async () => {
    expect((await list('nobody')).body).toEqual({
      object: 'list',
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    })
  })

  test.each([
    ['limit', '?limit=0'],
    ['limit', '?limit=101'],
    ['limit', '?limit=-1'],
    ['limit', '?limit=1.5'],
    ['limit', '?limit=ten'],
    ['limit', '?limit='],
    ['after', '?after=x'],
    ['after', "?after=' or 1=1"],
  ])('refuses a bad %s: %s', async (param, query) => {
    expect(await list('ann', query)).toMatchObject({
      status: 422,
      body: { error: { code: 'unprocessable', param } },
    })
  })

  test('shows when a key was last used', async () => {
    const { id, key } = await world.makeKey('emil', ['users'])
    await world.send('/who', { bearer: key })
    const lastUsed = async () => {
      const { body } = await list('emil')
      return Object(body).data[0].last_used_at
    }
    while ((await lastUsed()) === null) await Bun.sleep(20)
    expect(await lastUsed()).toMatch(/Z$/)
    expect(Object((await list('emil')).body).first_id).toBe(id)
  })
})

describe('DELETE /v1/api-keys/{id}', () => {
  const remove = (subject: string, id: string) =>
    world.send(`${path}/${id}`, { method: 'DELETE', bearer: world.token(subject, ['users']) })

  test('revokes a key permanently', async () => {
    const { id, key } = await world.makeKey('finn', ['users'])
    expect((await world.send('/who', { bearer: key })).status).toBe(200)
    expect(await remove('finn', id)).toMatchObject({
      status: 200,
      body: { id, object: 'api_key.deleted', deleted: true },
    })
    expect(await world.send('/who', { bearer: key })).toMatchObject({
      status: 401,
      body: { error: { code: 'invalid_api_key', message: 'This API key was revoked.' } },
    })
    expect(Object((await list('finn')).body).data).toEqual([])
    expect((await remove('finn', id)).status).toBe(404)
  })

  test('responds the same for another user’s key, an unknown key and an invalid id', async () => {
    const { id, key } = await world.makeKey('gina', ['users'])
    const absent = Bun.randomUUIDv7()
    const answers = [
      await remove('mallory', id),
      await remove('mallory', absent),
      await remove('mallory', 'x'),
    ]
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
      expect(answer.body).toEqual(answers[0]?.body)
    }
    expect((await world.send('/who', { bearer: key })).status).toBe(200)
  })
})

describe('an API key', () => {
  test('cannot create keys', async () => {
    const { key } = await world.makeKey('hugo', ['admins'])
    for (const json of [{ name: 'another' }, { not: 'valid' }]) {
      expect(await world.send(path, { method: 'POST', json, bearer: key })).toMatchObject({
        status: 403,
        body: { error: { type: 'permission_error', code: 'jwt_required' } },
      })
    }
  })

  test('lists and revokes its owner’s keys, and no others', async () => {
    const { key: bearer, id: ownId } = await world.makeKey('ida', ['users'])
    const other = await world.makeKey('ida', ['users'])
    const foreign = await world.makeKey('jan', ['users'])
    const { body } = await world.send(path, { bearer })
    const ids = Object(body).data.map(({ id }: { id: string }) => id)
    expect(ids.toSorted()).toEqual([ownId, other.id].toSorted())
    const end = (id: string) => world.send(`${path}/${id}`, { method: 'DELETE', bearer })
    expect((await end(foreign.id)).status).toBe(404)
    expect((await end(other.id)).status).toBe(200)
    expect((await world.send('/who', { bearer: other.key })).status).toBe(401)
  })
})
