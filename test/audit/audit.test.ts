import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAudit, sweepAuditLog } from '#audit/store.ts'
import { userIdOf } from '#auth/principal.ts'
import { column, makeKey, outcome, root, startWorld, type World } from '#test/directory/world.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'

let database: TestDatabase
let world: World

beforeAll(async () => {
  database = await openTestDatabase()
  world = await startWorld(database)
})
afterAll(async () => {
  await world.stop()
  await database.close()
})

const list = (query = '') => world.send(`GET /v1/audit-log${query}`)
const newest = async () => Object((await list('?limit=1')).body['data'])[0]
const count = async () => {
  const [row] = await database.drizzle.execute<{ entries: number }>(
    'select count(*)::integer as entries from audit_entry',
  )
  return row?.entries
}

describe('the record', () => {
  test('tells who did what to what, by which request, before and after', async () => {
    await world.send('POST /v1/groups', {
      json: { name: 'staff', permissions: ['can_access_api'] },
    })
    const permissions = ['can_access_api', 'can_edit_config']
    const json = { description: 'Those who work here', permissions }
    const answer = await world.send('PATCH /v1/groups/staff', { json })
    expect(await newest()).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      object: 'audit_entry',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      actor: { id: root, api_key_id: null },
      action: 'group.update',
      resource: { type: 'group', id: 'staff' },
      changes: {
        before: { description: '', permissions: ['can_access_api'] },
        after: json,
      },
      request_id: answer.headers.get('x-request-id'),
    })
  })

  test('tells the key that was used', async () => {
    const { id, key } = await makeKey(world, world.token('bob', ['admins']))
    await world.send('POST /v1/groups', { bearer: key, json: { name: 'by key' } })
    expect(await newest()).toMatchObject({ actor: { id: userIdOf('bob'), api_key_id: id } })
  })

  test('has every kind of change, and no secret', async () => {
    const after = String((await newest()).id)
    const secrets: string[] = []
    const bearer = world.token('cleo', ['users'])
    const own = await makeKey(world, bearer)
    secrets.push(own.key)
    await world.send(`DELETE /v1/api-keys/${own.id}`, { bearer })
    const cleo = userIdOf('cleo')
    await world.send('POST /v1/groups', { json: { name: 'crew', idp_claim: 'x-crew' } })
    await world.send(`PUT /v1/groups/crew/members/${cleo}`)
    await world.send(`DELETE /v1/groups/crew/members/${cleo}`)
    await world.send('DELETE /v1/groups/crew')
    for (const disabled of [true, false]) {
      await world.send(`PATCH /v1/users/${cleo}`, { json: { disabled } })
    }
    const account = await world.send('POST /v1/service-accounts', {
      json: { name: 'robot', groups: ['users'] },
    })
    const place = `/v1/service-accounts/${account.body['id']}`
    const made = await world.send(`POST ${place}/api-keys`, { json: { name: 'host' } })
    secrets.push(String(made.body['key']))
    await world.send(`DELETE ${place}/api-keys/${made.body['id']}`)
    await world.send(`PATCH /v1/users/${account.body['id']}`, { json: { name: 'arm' } })
    await world.send(`DELETE ${place}`)
    const all = await list('?limit=100')
    const actions = column(all, 'action').slice(0, column(all, 'id').indexOf(after)).toReversed()
    expect(actions).toEqual([
      'api_key.create',
      'api_key.revoke',
      'group.create',
      'group.member.add',
      'group.member.remove',
      'group.delete',
      'user.disable',
      'user.enable',
      'service_account.create',
      'api_key.create',
      'api_key.revoke',
      'user.rename',
      'service_account.delete',
    ])
    const rows = await database.drizzle.execute(
      'select to_jsonb(audit_entry)::text from audit_entry',
    )
    const told = JSON.stringify(rows)
    for (const secret of secrets) expect(told).not.toContain(secret.slice(10, 40))
    expect(told).not.toContain('masked')
    expect(told).not.toContain('hash')
  })

  test('has nothing of what was refused, or changed nothing', async () => {
    const before = await count()
    await world.send('PATCH /v1/groups/admins', { json: { permissions: [] } })
    await world.send('POST /v1/groups', { json: { name: 'Users' } })
    await world.send('PATCH /v1/groups/users', { json: {} })
    await world.send(`PATCH /v1/users/${root}`, { json: { disabled: false } })
    await world.send(`PUT /v1/groups/nobody/members/${root}`)
    await world.send(`DELETE /v1/groups/admins/members/${root}`)
    const json = { name: 'robot', groups: ['nobody'] }
    await world.send('POST /v1/service-accounts', { json })
    expect(await count()).toBe(before)
  })

  test('says no word twice of what was there already', async () => {
    await world.send(`PUT /v1/groups/users/members/${root}`)
    const before = await count()
    await world.send(`PUT /v1/groups/users/members/${root}`)
    expect(await count()).toBe(before)
  })
})

describe('GET /v1/audit-log', () => {
  test('finds what somebody did, an action, a family of them, a thing', async () => {
    const json = { name: 'of: dan_1%', permissions: [] }
    const bearer = world.token('dan', ['admins'])
    await world.send('POST /v1/groups', { bearer, json })
    await world.send(`PUT /v1/groups/${encodeURIComponent(json.name)}/members/${root}`, { bearer })
    const actions = async (query: string) => column(await list(query), 'action')
    expect(await actions(`?actor=${userIdOf('dan')}`)).toEqual(['group.member.add', 'group.create'])
    expect(await actions(`?actor=${userIdOf('dan')}&action=group.create`)).toEqual(['group.create'])
    expect(await actions(`?actor=${userIdOf('dan')}&action=group.member`)).toEqual([
      'group.member.add',
    ])
    expect(await actions(`?actor=${userIdOf('dan')}&action=grou`)).toEqual([])
    expect(await actions(`?resource=${encodeURIComponent(`group:${json.name}`)}`)).toEqual([
      'group.member.add',
      'group.create',
    ])
    const types = column(await list('?resource=group&limit=100'), 'resource').map(
      (resource) => Object(resource).type,
    )
    expect(new Set(types)).toEqual(new Set(['group']))
  })

  test('goes page by page, newest first, to its end', async () => {
    const seen: unknown[] = []
    let after = ''
    for (let more = true; more; ) {
      const page = await list(`?limit=3${after}`)
      seen.push(...column(page, 'id'))
      more = page.body['has_more'] === true
      after = `&after=${page.body['last_id']}`
    }
    expect(seen.length).toBe((await count()) ?? 0)
    expect(seen).toEqual(seen.toSorted().toReversed())
  })

  test.each([
    'actor=ann',
    'action=Group',
    'action=group.%25',
    'action=',
    'resource=',
    'resource=:x',
    'resource=Group%3Ax',
    `resource=group:${'x'.repeat(600)}`,
    'limit=0',
    'after=x',
  ])('refuses ?%s', async (query) => {
    expect(outcome(await list(`?${query}`))).toBe('422 unprocessable')
  })
})

describe('an entry of another part of the program', () => {
  const entry = {
    actor: null,
    action: 'theme.reset',
    resource: { type: 'theme', id: 'theme' },
    changes: { before: { name: 'a\0b' }, after: null },
  }

  test('is there if and only if the transaction is', async () => {
    const { drizzle } = database
    const audit = createAudit({ database, now: world.now })
    const before = (await count()) ?? 0
    const failing = drizzle.transaction(async (transaction) => {
      await audit.record(entry, transaction)
      throw new Error('the rest failed')
    })
    await expect(failing).rejects.toThrow('the rest failed')
    expect(await count()).toBe(before)
    await drizzle.transaction((transaction) => audit.record(entry, transaction))
    await audit.record(entry)
    expect(await count()).toBe(before + 2)
    expect(await newest()).toMatchObject({ actor: null, request_id: null, changes: entry.changes })
  })

  test('is kept for as many days as is configured', async () => {
    const audit = createAudit({ database, now: world.now })
    const all = async () => (await audit.list({}, { limit: 100 })).items
    const kept = (await all()).length
    const dayMs = 86_400_000
    const old = createAudit({ database, now: () => new Date(world.now().getTime() - 31 * dayMs) })
    for (let entries = 0; entries < 3; entries++) await old.record(entry)
    expect((await all()).length).toBe(kept + 3)
    await sweepAuditLog(database, { keepDays: 32, now: world.now() })
    expect((await all()).length).toBe(kept + 3)
    await sweepAuditLog(database, { keepDays: 31 - 1, now: world.now() })
    expect((await all()).length).toBe(kept)
  })
})
