import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { permissionNames } from '#auth/permissions.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { column, type DirectoryGateway, outcome, startGateway } from './directory-gateway.ts'

let database: TestDatabase
let gateway: DirectoryGateway

beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startGateway(database, { groups: { wardens: ['can_access_api'] } })
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const create = (json: unknown) => gateway.send('POST /v1/groups', { json })
const at = (name: string) => `/v1/groups/${encodeURIComponent(name)}`

let made = 0
/** A name that no other test uses. */
let name = ''
beforeEach(() => {
  made += 1
  name = `group ${made}`
})

describe('POST /v1/groups', () => {
  test('creates a group whose id is its name', async () => {
    const given = { name: `  ${name} `, description: 'For tests', permissions: ['can_access_api'] }
    const answer = await create({ ...given, idp_claim: `claim ${made}` })
    expect(answer.body).toEqual({
      id: name,
      object: 'group',
      name,
      description: 'For tests',
      permissions: ['can_access_api'],
      idp_claim: `claim ${made}`,
      is_locked: false,
      is_shipped: false,
      members: 0,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    const shown = await gateway.send(`GET ${at(name)}`)
    expect(shown.body).toEqual(answer.body)
    expect(shown.headers.get('etag')).toBe(answer.headers.get('etag'))
  })

  test('requires only a name; the group then grants nothing', async () => {
    const { body } = await create({ name })
    expect(body).toMatchObject({ description: '', permissions: [], idp_claim: null })
  })

  test('returns permissions without duplicates, in a fixed order', async () => {
    const permissions = [...permissionNames, ...permissionNames].reverse()
    expect((await create({ name, permissions })).body['permissions']).toEqual([...permissionNames])
  })

  test('accepts names in any script, which are addressable in a path', async () => {
    for (const odd of [
      `Ομάδα/${made}`,
      `鍵 🔑?#${made}`,
      `100 %${made}`,
      `'; drop table app_group; --`,
    ]) {
      expect((await create({ name: odd })).body['id']).toBe(odd)
      expect((await gateway.send(`GET ${at(odd)}`)).body['name']).toBe(odd)
      expect(outcome(await gateway.send(`DELETE ${at(odd)}`))).toBe('200')
      expect(outcome(await gateway.send(`GET ${at(odd)}`))).toBe('404 not_found')
    }
  })

  test('rejects a name that differs only in case', async () => {
    await create({ name: `Straße ${made}` })
    expect(outcome(await create({ name: `STRASSE ${made}` }))).toBe('409 group_exists')
    expect(outcome(await create({ name: 'Admins' }))).toBe('409 group_exists')
  })

  test('rejects a claim value that another group has', async () => {
    await create({ name, idp_claim: `taken ${made}` })
    const answer = await create({ name: `${name} too`, idp_claim: `taken ${made}` })
    expect(outcome(answer)).toBe('409 idp_claim_taken')
  })

  test('concurrent requests for one name create one group', async () => {
    const both = await Promise.all([create({ name }), create({ name: name.toUpperCase() })])
    expect(both.map(outcome).toSorted()).toEqual(['200', '409 group_exists'])
  })

  test.each<[unknown, string, string | null]>([
    [[], 'unprocessable', null],
    [{}, 'unprocessable', 'name'],
    [{ name: '' }, 'unprocessable', 'name'],
    [{ name: '   ' }, 'unprocessable', 'name'],
    [{ name: '..' }, 'unprocessable', 'name'],
    [{ name: 'x'.repeat(101) }, 'unprocessable', 'name'],
    [{ name: 'a\nb' }, 'unprocessable', 'name'],
    [{ name: 'a\0b' }, 'unprocessable', 'name'],
    ['{"name": "\\ud800"}', 'unprocessable', 'name'],
    [{ name: 'a', permissions: ['can_fly'] }, 'unprocessable', 'permissions[0]'],
    [{ name: 'a', permissions: 'can_access_api' }, 'unprocessable', 'permissions'],
    [{ name: 'a', permissions: null }, 'unprocessable', 'permissions'],
    [{ name: 'a', description: 'x'.repeat(1_001) }, 'unprocessable', 'description'],
    [{ name: 'a', description: 'a\0b' }, 'unprocessable', 'description'],
    [{ name: 'a', idp_claim: '' }, 'unprocessable', 'idp_claim'],
    [{ name: 'a', idp_claim: 'x'.repeat(256) }, 'unprocessable', 'idp_claim'],
    [{ name: 'a', idp_claim: 'a\tb' }, 'unprocessable', 'idp_claim'],
    [{ name: 'a', members: [] }, 'unknown_field', 'members'],
    [{ name: 'a', __proto__x: 1 }, 'unknown_field', '__proto__x'],
  ])('refuses %j with 422', async (json, code, param) => {
    expect(await create(json)).toMatchObject({ status: 422, body: { error: { code, param } } })
  })

  test('accepts a name of 100 and a description of 1,000 characters', async () => {
    const longest = { name: name.padEnd(100, 'x'), description: 'x'.repeat(1_000) }
    expect(outcome(await create({ ...longest, idp_claim: name.padEnd(255, 'y') }))).toBe('200')
  })
})

describe('PATCH /v1/groups/{id}', () => {
  const change = (json: unknown, headers: Record<string, string> = {}) =>
    gateway.send(`PATCH ${at(name)}`, { json, headers })

  test('changes only the given fields', async () => {
    const before = await create({ name, description: 'one', permissions: ['can_access_api'] })
    const after = await change({ description: 'two' })
    const { updated_at: _, ...rest } = before.body
    expect(after.body).toMatchObject({ ...rest, description: 'two' })
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
  })

  test('an update without effect keeps the ETag', async () => {
    const before = await create({ name, permissions: ['can_access_api', 'can_edit_config'] })
    const after = await change({ permissions: ['can_edit_config', 'can_access_api'] })
    expect(after.headers.get('etag')).toBe(before.headers.get('etag'))
    expect((await change({})).body).toEqual(before.body)
  })

  test('null removes the claim value', async () => {
    await create({ name, idp_claim: `gone ${made}` })
    expect((await change({ idp_claim: null })).body['idp_claim']).toBe(null)
    expect(outcome(await create({ name: `${name} b`, idp_claim: `gone ${made}` }))).toBe('200')
  })

  test('a stale If-Match fails, and the response has the current ETag', async () => {
    const { headers } = await create({ name })
    const first = headers.get('etag') ?? ''
    const second = (await change({ description: 'x' }, { 'if-match': first })).headers.get('etag')
    const stale = await change({ description: 'y' }, { 'if-match': first })
    expect(outcome(stale)).toBe('412 precondition_failed')
    expect(stale.headers.get('etag')).toBe(second)
    const removal = await gateway.send(`DELETE ${at(name)}`, { headers: { 'if-match': first } })
    expect(outcome(removal)).toBe('412 precondition_failed')
    expect(outcome(await change({}, { 'if-match': '*' }))).toBe('200')
  })

  test('of two updates with the same If-Match one succeeds', async () => {
    const { headers } = await create({ name })
    const ifMatch = { 'if-match': headers.get('etag') ?? '' }
    const both = await Promise.all(
      ['a', 'b'].map((description) => change({ description }, ifMatch)),
    )
    expect(both.map(outcome).toSorted()).toEqual(['200', '412 precondition_failed'])
  })

  test('the name cannot be changed', async () => {
    await create({ name })
    expect(await change({ name: 'another' })).toMatchObject({
      status: 422,
      body: { error: { param: 'name', message: expect.stringContaining('cannot be changed') } },
    })
  })

  test('rejects the fields that POST rejects', async () => {
    await create({ name })
    expect(outcome(await change({ colour: 'red' }))).toBe('422 unknown_field')
    expect(outcome(await change({ permissions: ['can_fly'] }))).toBe('422 unprocessable')
    expect(outcome(await gateway.send('PATCH /v1/groups/nobody', { json: {} }))).toBe(
      '404 not_found',
    )
  })
})

describe('configured and built-in groups', () => {
  test('a configured group cannot be changed or deleted', async () => {
    expect((await gateway.send('GET /v1/groups/wardens')).body).toMatchObject({ is_locked: true })
    const change = await gateway.send('PATCH /v1/groups/wardens', { json: { description: 'x' } })
    expect(outcome(change)).toBe('409 group_locked')
    expect(outcome(await gateway.send('DELETE /v1/groups/wardens'))).toBe('409 group_locked')
  })

  test('a built-in group can be changed but not deleted', async () => {
    const json = { description: 'Everybody' }
    const changed = await gateway.send('PATCH /v1/groups/users', { json })
    expect(changed.body).toMatchObject({ is_shipped: true, description: 'Everybody' })
    expect(outcome(await gateway.send('DELETE /v1/groups/users'))).toBe('409 group_shipped')
  })

  test('the limit of 1,000 groups is an error', async () => {
    await database.drizzle.execute(
      `insert into app_group (name, permissions) select 'filling ' || n, '{}' from generate_series(1, 1000) n`,
    )
    expect(outcome(await create({ name }))).toBe('422 too_many_groups')
    await database.drizzle.execute(`delete from app_group where name like 'filling %'`)
    expect(outcome(await create({ name }))).toBe('200')
  })
})

test('groups are listed by name in pages', async () => {
  for (const letter of ['b', 'a', 'C']) await create({ name: `${name} ${letter}` })
  const seen: unknown[] = []
  let after = ''
  for (let more = true; more; ) {
    const page = await gateway.send(`GET /v1/groups?limit=2${after}`)
    seen.push(...column(page, 'id'))
    more = page.body['has_more'] === true
    after = `&after=${encodeURIComponent(String(page.body['last_id']))}`
  }
  const own = seen.filter((id) => String(id).startsWith(`${name} `))
  expect(own).toEqual(['C', 'a', 'b'].map((letter) => `${name} ${letter}`))
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen).toContain('admins')
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'after=%00']) {
    expect(outcome(await gateway.send(`GET /v1/groups?${query}`))).toBe('422 unprocessable')
  }
})
