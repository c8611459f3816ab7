import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { openTestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  column,
  type DirectoryGateway,
  makeKey,
  outcome,
  startGateway,
  startReplicas,
} from './directory-gateway.ts'

let two: Awaited<ReturnType<typeof startReplicas>>
let here: DirectoryGateway
let there: DirectoryGateway

beforeAll(async () => {
  two = await startReplicas()
  here = two.here
  there = two.there
})
afterAll(() => two.stop())

const at = (subject: string) => `/v1/users/${userIdOf(subject)}`
const change = (subject: string, json: unknown) => here.send(`PATCH ${at(subject)}`, { json })
const find = (subject: string) => here.send(`GET ${at(subject)}`)
const refusal = { status: 401, body: { error: { code: 'user_disabled' } } }

describe('GET /v1/users/{id}', () => {
  test('returns identity, groups with their sources, and permissions', async () => {
    await here.send('POST /v1/groups', {
      json: { name: 'staff', permissions: ['can_edit_config'] },
    })
    const token = here.token('ann', ['users', 'staff', 'x-1'], { name: ' Ann Example ' })
    await here.statusOf(token)
    await here.send(`PUT /v1/groups/staff/members/${userIdOf('ann')}`)
    expect((await find('ann')).body).toEqual({
      id: userIdOf('ann'),
      object: 'user',
      kind: 'user',
      subject: 'ann',
      name: 'Ann Example',
      disabled_at: null,
      last_seen_at: expect.stringMatching(/^\d{4}-.*Z$/),
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      created_by: null,
      groups: [
        { id: 'staff', name: 'staff', sources: ['idp', 'manual'], is_known: true },
        { id: 'users', name: 'users', sources: ['idp'], is_known: true },
        { id: 'x-1', name: 'x-1', sources: ['idp'], is_known: false },
      ],
      permissions: ['can_access_api', 'can_edit_config'],
    })
    expect(outcome(await find('never seen'))).toBe('404 not_found')
    expect(outcome(await here.send('GET /v1/users/x'))).toBe('404 not_found')
  })

  test.each<[Record<string, unknown>, string | null]>([
    [{ name: 'A', preferred_username: 'B', email: 'C' }, 'A'],
    [{ name: '  ', preferred_username: 'B' }, 'B'],
    [{ name: 'two\nlines', email: 'c@example.org' }, 'c@example.org'],
    [{ name: 'x'.repeat(256) }, null],
    [{ name: { first: 'A' } }, null],
    [{ name: 'a\0b' }, null],
    [{}, null],
  ])('a token that says %j calls its bearer %p', async (claims, name) => {
    const subject = `named by ${JSON.stringify(claims).slice(0, 100)}`
    await here.statusOf(here.token(subject, ['users'], claims))
    expect((await find(subject)).body['name']).toBe(name)
  })

  test('a newer token updates the name; a token without a name keeps it', async () => {
    const nowS = Math.floor(here.now().getTime() / 1_000)
    const names = [{ name: 'Old' }, { name: 'New' }, {}]
    const seen: unknown[] = []
    for (const [index, claims] of names.entries()) {
      await here.statusOf(here.token('bea', ['users'], { ...claims, iat: nowS + index }))
      seen.push((await find('bea')).body['name'])
    }
    expect(seen).toEqual(['Old', 'New', 'New'])
  })

  test('last_seen_at has a precision of one hour', async () => {
    const token = here.token('cy', ['users'])
    await here.statusOf(token)
    const first = (await find('cy')).body['last_seen_at']
    for (const gateway of [here, there]) gateway.pass(50 * 60_000)
    await here.statusOf(here.token('cy', ['users'], { iat: 1 }))
    expect((await find('cy')).body['last_seen_at']).toBe(first)
    for (const gateway of [here, there]) gateway.pass(11 * 60_000)
    await here.statusOf(here.token('cy', ['users'], { iat: 2 }))
    expect(String((await find('cy')).body['last_seen_at']) > String(first)).toBe(true)
  })
})

describe('GET /v1/users', () => {
  test('finds part of a name or subject case-insensitively, in pages', async () => {
    for (const [subject, name] of [
      ['z-needle', undefined],
      ['q-1', 'The Needle'],
      ['q-2', 'a needle_man'],
      ['q-3', 'nobody'],
    ]) {
      await here.statusOf(here.token(String(subject), ['users'], { name }))
    }
    const seen: unknown[] = []
    let after = ''
    for (let more = true; more; ) {
      const page = await here.send(`GET /v1/users?q=NEEDLE&limit=1${after}`)
      seen.push(...column(page, 'subject'))
      more = page.body['has_more'] === true
      after = `&after=${page.body['last_id']}`
    }
    expect(seen).toEqual(['q-2', 'q-1', 'z-needle'])
    expect(column(await here.send('GET /v1/users?q=needle_'), 'subject')).toEqual(['q-2'])
    expect(column(await here.send("GET /v1/users?q=%25'--"), 'subject')).toEqual([])
    for (const wildcard of ['nee_le', 'n%25le', '%25']) {
      const query = `q=${wildcard.includes('%') ? wildcard : encodeURIComponent(wildcard)}`
      expect(column(await here.send(`GET /v1/users?${query}`), 'subject'), wildcard).toEqual([])
    }
  })

  test('filters by kind', async () => {
    await here.send('POST /v1/service-accounts', { json: { name: 'a program' } })
    expect(column(await here.send('GET /v1/users?kind=service'), 'name')).toEqual(['a program'])
    expect(column(await here.send('GET /v1/users?kind=user&limit=100'), 'kind')).not.toContain(
      'service',
    )
  })

  test.each([
    'kind=robot',
    'limit=0',
    'after=x',
    `after=${Bun.randomUUIDv7()}`,
    `q=${'x'.repeat(257)}`,
  ])('refuses ?%s', async (query) => {
    expect(outcome(await here.send(`GET /v1/users?${query}`))).toBe('422 unprocessable')
  })
})

describe('a disabled user', () => {
  test('tokens and keys are rejected immediately on this replica and shortly after on others', async () => {
    const token = here.token('dan', ['users'])
    const { key } = await makeKey(here, token)
    for (const bearer of [token, key]) expect(await there.statusOf(bearer)).toBe(200)
    expect((await change('dan', { disabled: true })).body['disabled_at']).not.toBe(null)
    for (const bearer of [token, key, here.token('dan', ['admins'])]) {
      expect(await here.send('GET /v1/me', { bearer })).toMatchObject(refusal)
      await eventually('the other replica refuses it', async () =>
        Bun.deepEquals(await there.statusOf(bearer), 401),
      )
    }
    await change('dan', { disabled: false })
    for (const bearer of [token, key]) {
      expect(await here.statusOf(bearer)).toBe(200)
      await eventually('the other replica takes it again', async () =>
        Bun.deepEquals(await there.statusOf(bearer), 200),
      )
    }
  })

  test('a rejected token does not update groups', async () => {
    await here.statusOf(here.token('eve', ['users']))
    await change('eve', { disabled: true })
    const later = Math.floor(here.now().getTime() / 1_000) + 10
    await here.statusOf(here.token('eve', ['admins'], { iat: later }))
    expect((await find('eve')).body['permissions']).toEqual(['can_access_api'])
  })

  test('stays rejected while the database is unreachable; other users are served', async () => {
    const database = await openTestDatabase()
    const gateway = await startGateway(database, { keyCacheMs: 0 })
    // Called after the gateway, which empties its cache again when its own notification arrives.
    const notified: string[] = []
    await database.listen('auth', { onMessage: (text) => notified.push(text), onGap: () => {} })
    const [bad, good] = [gateway.token('bad', ['users']), gateway.token('good', ['users'])]
    const { key } = await makeKey(gateway, bad)
    await gateway.send('POST /v1/groups', { json: { name: 'staff', permissions: [] } })
    await gateway.statusOf(good)
    await gateway.send(`PUT /v1/groups/staff/members/${userIdOf('good')}`)
    await gateway.send(`PATCH ${at('bad')}`, { json: { disabled: true } })
    await eventually('the change is known', () => notified.includes(`user:${userIdOf('bad')}`))
    const statuses = () => Promise.all([bad, key, good].map(gateway.statusOf))
    expect(await statuses()).toEqual([401, 401, 200])
    await database.close()
    expect(await statuses()).toEqual([401, 401, 200])
    const again = gateway.token('bad', ['users'])
    expect(await gateway.statusOf(again)).toBe(401)
    expect((await gateway.rightsOf(gateway.token('good', ['users']))).groups).toEqual([
      'staff',
      'users',
    ])
    await gateway.stop()
  })
})

describe('PATCH /v1/users/{id}', () => {
  test('an update without effect is not recorded', async () => {
    await here.statusOf(here.token('fay', ['users']))
    await change('fay', { disabled: true })
    const first = (await find('fay')).body['disabled_at']
    expect((await change('fay', { disabled: true })).body['disabled_at']).toBe(first)
    expect((await change('fay', {})).body['disabled_at']).toBe(first)
  })

  test('rejects a name for a person, whose name comes from tokens', async () => {
    await here.statusOf(here.token('gus', ['users']))
    expect(outcome(await change('gus', { name: 'Gustav' }))).toBe('409 idp_managed')
    expect(outcome(await change('gus', { disabled: true, name: 'Gustav' }))).toBe('409 idp_managed')
    expect((await find('gus')).body['disabled_at']).toBe(null)
  })

  test.each<[unknown, string]>([
    [{ disabled: 'yes' }, '422 unprocessable'],
    [{ disabled: null }, '422 unprocessable'],
    [{ name: '' }, '422 unprocessable'],
    [{ name: 'a\nb' }, '422 unprocessable'],
    [{ groups: [] }, '422 unknown_field'],
    [{ kind: 'service' }, '422 unknown_field'],
    [[], '422 unprocessable'],
    ['{', '400 malformed_json'],
  ])('refuses %j', async (json, expected) => {
    await here.statusOf(here.token('hal', ['users']))
    expect(outcome(await change('hal', json))).toBe(expected)
  })

  test('unknown users are not_found', async () => {
    expect(outcome(await change('never seen', { disabled: true }))).toBe('404 not_found')
  })
})
