import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAudit, sweepAuditLog } from '#audit/store.ts'
import { userIdOf } from '#auth/principal.ts'
import {
  column,
  type DirectoryGateway,
  makeKey,
  outcome,
  root,
  startGateway,
} from '#test/directory/directory-gateway.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'

let database: TestDatabase
let gateway: DirectoryGateway

beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startGateway(database)
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const list = (query = '') => gateway.send(`GET /v1/audit-log${query}`)
const newest = async () => Object((await list('?limit=1')).body['data'])[0]
const count = async () => {
  const [row] = await database.drizzle.execute<{ entries: number }>(
    'select count(*)::integer as entries from audit_entry',
  )
  return row?.entries
}

describe('audit entries', () => {
  test('contain actor, action, resource, request id and changes', async () => {
    await gateway.send('POST /v1/groups', {
      json: { name: 'staff', permissions: ['can_access_api'] },
    })
    const permissions = ['can_access_api', 'can_edit_config']
    const json = { description: 'Those who work here', permissions }
    const answer = await gateway.send('PATCH /v1/groups/staff', { json })
    expect(await newest()).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      object: 'audit_entry',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      actor: { id: root, name: 'root', api_key_id: null, ip_address: '127.0.0.1' },
      action: 'group.update',
      resource: { type: 'group', id: 'staff' },
      changes: {
        before: { description: '', permissions: ['can_access_api'] },
        after: json,
      },
      request_id: answer.headers.get('x-request-id'),
    })
  })

  test('contain the id of the API key', async () => {
    const { id, key } = await makeKey(gateway, gateway.token('bob', ['admins']))
    await gateway.send('POST /v1/groups', { bearer: key, json: { name: 'by key' } })
    expect(await newest()).toMatchObject({ actor: { id: userIdOf('bob'), api_key_id: id } })
  })

  test('exist for every kind of change, without secrets', async () => {
    const after = String((await newest()).id)
    const secrets: string[] = []
    const bearer = gateway.token('cleo', ['users'])
    const own = await makeKey(gateway, bearer)
    secrets.push(own.key)
    await gateway.send(`DELETE /v1/api-keys/${own.id}`, { bearer })
    const cleo = userIdOf('cleo')
    await gateway.send('POST /v1/groups', { json: { name: 'crew', idp_claim: 'x-crew' } })
    await gateway.send(`PUT /v1/groups/crew/members/${cleo}`)
    await gateway.send(`DELETE /v1/groups/crew/members/${cleo}`)
    await gateway.send('DELETE /v1/groups/crew')
    for (const disabled of [true, false]) {
      await gateway.send(`PATCH /v1/users/${cleo}`, { json: { disabled } })
    }
    const account = await gateway.send('POST /v1/service-accounts', {
      json: { name: 'robot', groups: ['users'] },
    })
    const place = `/v1/service-accounts/${account.body['id']}`
    const made = await gateway.send(`POST ${place}/api-keys`, { json: { name: 'host' } })
    secrets.push(String(made.body['key']))
    await gateway.send(`DELETE ${place}/api-keys/${made.body['id']}`)
    await gateway.send(`PATCH /v1/users/${account.body['id']}`, { json: { name: 'arm' } })
    await gateway.send(`DELETE ${place}`)
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
    const entries = JSON.stringify(rows)
    for (const secret of secrets) expect(entries).not.toContain(secret.slice(10, 40))
    expect(entries).not.toContain('masked')
    expect(entries).not.toContain('hash')
  })

  test('do not exist for rejected changes and changes without effect', async () => {
    const before = await count()
    await gateway.send('PATCH /v1/groups/admins', { json: { permissions: [] } })
    await gateway.send('POST /v1/groups', { json: { name: 'Users' } })
    await gateway.send('PATCH /v1/groups/users', { json: {} })
    await gateway.send(`PATCH /v1/users/${root}`, { json: { disabled: false } })
    await gateway.send(`PUT /v1/groups/nobody/members/${root}`)
    await gateway.send(`DELETE /v1/groups/admins/members/${root}`)
    const json = { name: 'robot', groups: ['nobody'] }
    await gateway.send('POST /v1/service-accounts', { json })
    expect(await count()).toBe(before)
  })

  test('do not exist for repeated additions', async () => {
    await gateway.send(`PUT /v1/groups/users/members/${root}`)
    const before = await count()
    await gateway.send(`PUT /v1/groups/users/members/${root}`)
    expect(await count()).toBe(before)
  })
})

describe('GET /v1/audit-log', () => {
  test('filters by actor, action, action prefix and resource', async () => {
    const json = { name: 'of: dan_1%', permissions: [] }
    const bearer = gateway.token('dan', ['admins'])
    await gateway.send('POST /v1/groups', { bearer, json })
    await gateway.send(`PUT /v1/groups/${encodeURIComponent(json.name)}/members/${root}`, {
      bearer,
    })
    const actions = async (query: string) => column(await list(query), 'action')
    expect(await actions(`?actor=${userIdOf('dan')}`)).toEqual(['group.member.add', 'group.create'])
    expect(await actions(`?actor=${userIdOf('dan')}&action=group.create`)).toEqual(['group.create'])
    expect(await actions(`?actor=${userIdOf('dan')}&action=group.member`)).toEqual([
      'group.member.add',
    ])
    expect(await actions(`?actor=${userIdOf('dan')}&action=grou`)).toEqual([])
    expect(await actions(`?actor=${userIdOf('dan')}&action=gr_up`)).toEqual([])
    expect(await actions(`?resource=${encodeURIComponent(`group:${json.name}`)}`)).toEqual([
      'group.member.add',
      'group.create',
    ])
    const types = column(await list('?resource=group&limit=100'), 'resource').map(
      (resource) => Object(resource).type,
    )
    expect(new Set(types)).toEqual(new Set(['group']))
  })

  test('lists entries newest first, in pages', async () => {
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

  test('pages of an action prefix have all of its actions, newest first', async () => {
    const all = await list('?limit=100')
    const wanted = column(all, 'id').filter((_, at) =>
      /^group(\.|$)/.test(String(column(all, 'action')[at])),
    )
    const seen: unknown[] = []
    for (let after = ''; ; after = `&after=${seen.at(-1)}`) {
      const page = await list(`?action=group&limit=2${after}`)
      seen.push(...column(page, 'id'))
      if (page.body['has_more'] !== true) break
    }
    expect(wanted.length).toBeGreaterThan(4)
    expect(seen).toEqual(wanted)
  })

  test('an action without entries is noticed without reading the entries of others', async () => {
    await database.drizzle.transaction(async (drizzle) => {
      await drizzle.execute(`
        insert into audit_entry (id, at, action, resource_type, resource_id, changes)
        select gen_random_uuid(), now(), 'mass.create', 'mass', n, '{}' from generate_series(1, 3000) n`)
      const audit = createAudit({ database: { drizzle }, now: gateway.now })
      expect((await audit.list({ action: 'mask' }, { limit: 50 })).items).toEqual([])
      const [row] = await drizzle.execute<{ read: number }>(`
        select (seq_tup_read + idx_tup_fetch)::integer as read
        from pg_stat_xact_user_tables where relname = 'audit_entry'`)
      expect(row?.read).toBeLessThan(500)
      await drizzle.execute(`delete from audit_entry where resource_type = 'mass'`)
    })
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

describe('an entry of another module', () => {
  const entry = {
    actor: null,
    action: 'theme.reset',
    resource: { type: 'theme', id: 'theme' },
    changes: { before: { name: 'a\0b' }, after: null },
  }

  test('exists if and only if its transaction is committed', async () => {
    const { drizzle } = database
    const audit = createAudit({ database, now: gateway.now })
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

  test('has no long texts, and only the names of many fields', async () => {
    const audit = createAudit({ database, now: gateway.now })
    const long = 'x'.repeat(10_000)
    await audit.record({ ...entry, changes: { before: { name: long }, after: { name: 'short' } } })
    const cut = `${'x'.repeat(500)}…`
    expect((await newest()).changes).toEqual({ before: { name: cut }, after: { name: 'short' } })
    const names = Array.from({ length: 300 }, (_, index) => `field-${index}`)
    const many = Object.fromEntries(names.map((name) => [name, long]))
    await audit.record({ ...entry, changes: { before: null, after: many } })
    expect((await newest()).changes).toEqual({
      before: null,
      after: { too_large: true, fields: names.slice(0, 100) },
    })
  })

  test('is listed by time: from a moment, up to another', async () => {
    const audit = createAudit({ database, now: gateway.now })
    const at = (hour: number) => new Date(Date.UTC(2020, 1, 1, hour))
    for (const hour of [1, 2, 3, 4]) {
      const past = createAudit({ database, now: () => at(hour) })
      await past.record({ ...entry, resource: { type: 'group', id: `at ${hour}` } })
    }
    const ids = column(
      await list(`?from=${at(2).toISOString()}&to=${at(4).toISOString()}`),
      'resource',
    )
    expect(ids).toEqual([3, 2].map((hour) => ({ type: 'group', id: `at ${hour}` })))
    expect((await list('?from=yesterday')).status).toBe(422)
    await sweepAuditLog(database, { keepDays: 1_000, now: gateway.now() })
    expect((await audit.list({ to: at(5) }, { limit: 1 })).items).toEqual([])
  })

  test('is kept for the configured number of days', async () => {
    const audit = createAudit({ database, now: gateway.now })
    const all = async () => (await audit.list({}, { limit: 100 })).items
    const kept = (await all()).length
    const dayMs = 86_400_000
    const old = createAudit({ database, now: () => new Date(gateway.now().getTime() - 31 * dayMs) })
    for (let entries = 0; entries < 3; entries++) await old.record(entry)
    expect((await all()).length).toBe(kept + 3)
    await sweepAuditLog(database, { keepDays: 32, now: gateway.now() })
    expect((await all()).length).toBe(kept + 3)
    await sweepAuditLog(database, { keepDays: 31 - 1, now: gateway.now() })
    expect((await all()).length).toBe(kept)
  })
})
