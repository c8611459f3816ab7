import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import { loadConfig } from '#config/load.ts'
import { createSettings } from '#settings/settings.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { dora, outcome, type SettingsGateway, startSettingsGateway } from './settings-gateway.ts'

let database: TestDatabase
let gateway: SettingsGateway

beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startSettingsGateway(database)
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

type Item = { revision: number; patch: object; before: object; after: object }

async function history(query = ''): Promise<{ data: Item[]; has_more: boolean; last_id: number }> {
  const response = await gateway.send(`/v1/config/history${query}`)
  expect(outcome(response)).toBe('200')
  return Object(response.body)
}

const rollBack = (json: unknown, options = {}) =>
  gateway.send('/v1/config/rollback', { json, ...options })

describe('the history', () => {
  test('lists changes with their authors, newest first', async () => {
    await gateway.patch({ retrieval_k: 5, files: { max_bytes: 7 } })
    const eve = { subject: 'eve', groups: ['admins'] }
    await gateway.patch({ retrieval_k: null, files: { max_bytes: 7 } }, { as: eve })
    const { data } = await history('?limit=2')
    expect(data).toEqual([
      {
        object: 'config.revision',
        revision: expect.any(Number),
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        actor_id: userIdOf('eve'),
        actor_name: 'eve',
        patch: { retrieval_k: null },
        before: { retrieval_k: 5, files: { max_bytes: 7 } },
        after: { files: { max_bytes: 7 } },
      },
      expect.objectContaining({
        actor_id: userIdOf(dora.subject),
        patch: { retrieval_k: 5, files: { max_bytes: 7 } },
        before: {},
      }),
    ] as unknown as Item[])
  })

  test('has pages without gaps or duplicates', async () => {
    for (let k = 10; k < 17; k++) await gateway.patch({ retrieval_k: k })
    const all = (await history('?limit=100')).data.map(({ revision }) => revision)
    const paged: number[] = []
    let query = '?limit=3'
    for (;;) {
      const page = await history(query)
      paged.push(...page.data.map(({ revision }) => revision))
      if (!page.has_more) break
      query = `?limit=3&after=${page.last_id}`
    }
    expect(paged).toEqual(all)
    expect(paged).toEqual(paged.toSorted((a, b) => b - a))
    expect(await history('?after=1')).toMatchObject({ data: [], has_more: false, last_id: null })
  })

  test('validates limit and after', async () => {
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'limit=', 'limit=1.5']) {
      const response = await gateway.send(`/v1/config/history?${query}`)
      expect(outcome(response)).toBe('422 unprocessable limit')
    }
    for (const query of ['after=x', 'after=-1', 'after=', 'after=2147483648', 'after=1.5']) {
      const response = await gateway.send(`/v1/config/history?${query}`)
      expect(outcome(response)).toBe('422 unprocessable after')
    }
    for (const query of ['limit=1', 'limit=100', 'after=2147483647']) await history(`?${query}`)
  })

  test('keeps the last 500 changes', async () => {
    const other = await openTestDatabase()
    await other.drizzle.execute(sql`
      insert into settings_revision (actor_id, patch, before, after, created_at)
      select ${userIdOf('dora')}::uuid, '{}', '{}', '{"files":{"max_bytes":5}}', now()
      from generate_series(1, 500)`)
    const config = loadConfig({})
    const now = () => new Date()
    const settings = await createSettings({ config, database: other, log: quietLog, now })
    expect(await settings.overridesAfter(1)).toEqual(new Map([['files.max_bytes', 5]]))
    const change = { actorId: userIdOf('dora'), isExpected: () => true, isDryRun: false }
    await settings.change(change, ({ overrides }) => new Map([...overrides, ['retrieval_k', 9]]))
    expect(await settings.overridesAfter(1)).toBeUndefined()
    const oldest = await settings.history({ limit: 2, before: 4 })
    expect(oldest.items.map(({ revision }) => revision)).toEqual([3, 2])
    expect(oldest.hasMore).toBe(false)
    expect(settings.current()).toMatchObject({ retrieval_k: 9, files: { max_bytes: 5 } })
    await settings.close()
    await other.close()
  })
})

describe('a rollback', () => {
  test('is a new change that restores an earlier state', async () => {
    await rollBack({ revision: 0 })
    const first = await gateway.patch({ retrieval_k: 5, files: { people_picker: false } })
    const [then] = (await history('?limit=1')).data
    await gateway.patch({ retrieval_k: 6, responses: { ttl_seconds: 60 } })
    const response = await rollBack({ revision: then?.revision })
    expect(response.body).toEqual(first.body)
    expect(response.etag).not.toBe(first.etag)
    expect((await gateway.read()).etag).toBe(response.etag)
    const [newest] = (await history('?limit=1')).data
    expect(newest).toMatchObject({
      patch: { retrieval_k: 5, responses: { ttl_seconds: null } },
      after: then?.after ?? {},
    })
  })

  test('to 0 removes all settings', async () => {
    await gateway.patch({ retrieval_k: 5 })
    expect((await rollBack({ revision: 0 })).body).toMatchObject({ retrieval_k: 3 })
    expect((await history('?limit=1')).data[0]?.after).toEqual({})
  })

  test('is validated again: referenced files may be gone', async () => {
    const id = await gateway.upload(dora, 'soon-gone')
    await gateway.patch({ service_desk: { document_ids: [id] } })
    const [withFile] = (await history('?limit=1')).data
    await gateway.patch({ service_desk: null })
    const caller = { userId: userIdOf(dora.subject), groups: dora.groups }
    await gateway.files.remove(
      caller,
      { kind: 'file', id },
      { isRecursive: false, ifVersion: null },
    )
    const response = await rollBack({ revision: withFile?.revision })
    expect(outcome(response)).toBe('422 document_not_found service_desk.document_ids[0]')
  })

  test('supports If-Match and dry runs', async () => {
    await rollBack({ revision: 0 })
    const { etag } = await gateway.patch({ retrieval_k: 5 })
    const stale = await rollBack({ revision: 0 }, { headers: { 'if-match': '"x"' } })
    expect(outcome(stale)).toBe('412 precondition_failed')
    const tried = await gateway.send('/v1/config/rollback?dry_run=true', { json: { revision: 0 } })
    expect(tried.body).toMatchObject({ before: { retrieval_k: 5 }, after: { retrieval_k: 3 } })
    expect((await gateway.read()).etag).toBe(etag)
    const done = await rollBack({ revision: 0 }, { headers: { 'if-match': etag } })
    expect(outcome(done)).toBe('200')
  })

  test('requires an existing revision', async () => {
    const last = (await history('?limit=1')).data[0]?.revision ?? 0
    const tries: [body: unknown, outcome: string][] = [
      [{ revision: last + 1 }, '422 revision_not_found revision'],
      [{ revision: 2_147_483_647 }, '422 revision_not_found revision'],
      [{ revision: 2_147_483_648 }, '422 unprocessable revision'],
      [{ revision: -1 }, '422 unprocessable revision'],
      [{ revision: '1' }, '422 unprocessable revision'],
      [{ revision: 1.5 }, '422 unprocessable revision'],
      [{ revision: null }, '422 unprocessable revision'],
      [{}, '422 unprocessable revision'],
      [{ revision: 0, force: true }, '422 unknown_field force'],
      [[], '422 unprocessable'],
      ['{', '400 malformed_json'],
    ]
    for (const [body, expected] of tries) expect(outcome(await rollBack(body))).toBe(expected)
  })
})
