import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import {
  ann,
  dora,
  outcome,
  type SettingsGateway,
  startSettingsGateway,
  upstreamKey,
} from './settings-gateway.ts'

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

const shipped = {
  retrieval_k: 3,
  rerank_top_n: null,
  embedding_model: 'local',
  reranker_model: null,
  service_desk: { document_ids: null, model: null },
  files: { max_bytes: 5_368_709_120, trash_seconds: 2_592_000, people_picker: true },
  models: { access: [] },
  responses: { ttl_seconds: 2_592_000 },
  limits: { default: {}, group: {}, user: {}, model: {} },
  budgets: { default: {}, user: {}, group: {}, key: {} },
}

beforeEach(async () => {
  const response = await gateway.send('/v1/config/rollback', { json: { revision: 0 } })
  expect(response.body).toEqual(shipped)
})

describe('reading', () => {
  test('returns plain values with an entity tag to every user', async () => {
    const first = await gateway.read()
    expect(outcome(first)).toBe('200')
    expect(first.body).toEqual(shipped)
    expect(first.etag).toMatch(/^"[^"]+"$/)
    expect((await gateway.read()).etag).toBe(first.etag)
    const changed = await gateway.patch({ retrieval_k: 4 })
    expect(changed.etag).not.toBe(first.etag)
    expect((await gateway.read()).etag).toBe(changed.etag)
  })

  test('requires can_access_api, and changing requires can_edit_config', async () => {
    const outsider = { subject: 'nils', groups: ['outsiders'] }
    const readPaths = ['/v1/config', '/v1/config/schema']
    for (const path of readPaths) {
      expect(outcome(await gateway.send(path, { as: ann }))).toBe('200')
      expect(outcome(await gateway.send(path, { as: outsider }))).toBe('403 permission_denied')
    }
    const editing = (as: typeof ann) => [
      gateway.patch({ retrieval_k: 5 }, { as }),
      gateway.patch('{', { as }),
      gateway.send('/v1/config/history', { as }),
      gateway.send('/v1/config/rollback', { as, json: { revision: 0 } }),
    ]
    for (const response of [...editing(ann), ...editing(outsider)]) {
      expect(outcome(await response)).toBe('403 permission_denied')
    }
    expect((await gateway.read()).body).toEqual(shipped)
  })

  test('never discloses secrets of the configuration', async () => {
    await gateway.patch({ embedding_model: 'vectors' })
    const paths = ['/v1/config', '/v1/config/schema', '/v1/config/history']
    const texts = await Promise.all(paths.map(async (path) => (await gateway.send(path)).text))
    const dry = await gateway.patch({ retrieval_k: 5 }, { method: 'PATCH' })
    for (const text of [...texts, dry.text, ...gateway.logLines]) {
      expect(text).not.toContain(upstreamKey)
    }
    expect(texts.join('')).not.toMatch(/secret|jwt|gpu/i)
  })
})

describe('a merge patch', () => {
  test('changes only the keys that it has', async () => {
    await gateway.patch({ retrieval_k: 5, files: { max_bytes: 1_000 } })
    const response = await gateway.patch({ files: { people_picker: false }, responses: {} })
    expect(response.body).toEqual({
      ...shipped,
      retrieval_k: 5,
      files: { max_bytes: 1_000, trash_seconds: 2_592_000, people_picker: false },
    })
    expect((await gateway.read()).body).toEqual(response.body)
  })

  test('null resets a key or a whole section', async () => {
    await gateway.patch({ retrieval_k: 5, files: { max_bytes: 1_000, people_picker: false } })
    expect((await gateway.patch({ retrieval_k: null })).body['retrieval_k']).toBe(3)
    expect((await gateway.patch({ files: null })).body).toEqual(shipped)
  })

  test('without an effect creates no revision', async () => {
    const { etag } = await gateway.patch({ retrieval_k: 5 })
    expect((await gateway.patch({ retrieval_k: 5 })).etag).toBe(etag)
    expect((await gateway.patch({})).etag).toBe(etag)
    expect((await gateway.patch({ files: { max_bytes: null } })).etag).toBe(etag)
  })

  test('with one invalid key has no effect', async () => {
    const response = await gateway.patch({ retrieval_k: 5, files: { max_bytes: 0 } })
    expect(outcome(response)).toBe('422 unprocessable files.max_bytes')
    expect((await gateway.read()).body).toEqual(shipped)
  })
})

describe('If-Match', () => {
  test('refuses the second of two changes of the same state', async () => {
    const { etag } = await gateway.read()
    const headers = { 'if-match': etag }
    const first = await gateway.patch({ retrieval_k: 5 }, { headers })
    expect(outcome(first)).toBe('200')
    const second = await gateway.patch({ files: { max_bytes: 9 } }, { headers })
    expect(outcome(second)).toBe('412 precondition_failed')
    expect(second.etag).toBe(first.etag)
    const third = await gateway.patch(
      { files: { max_bytes: 9 } },
      { headers: { 'if-match': second.etag } },
    )
    expect(third.body).toMatchObject({ retrieval_k: 5, files: { max_bytes: 9 } })
  })

  test('admits exactly one of several concurrent changes', async () => {
    const { etag } = await gateway.read()
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        gateway.patch({ retrieval_k: 10 + index }, { headers: { 'if-match': etag } }),
      ),
    )
    const accepted = responses.filter(({ status }) => status === 200)
    expect(accepted).toHaveLength(1)
    expect(responses.filter(({ status }) => status === 412)).toHaveLength(7)
    expect((await gateway.read()).body).toEqual(Object(accepted[0]?.body))
  })

  test('accepts several tags or *; weak and unknown tags do not match', async () => {
    const { etag } = await gateway.read()
    const tries: [header: string, status: number][] = [
      [`"x", ${etag}`, 200],
      ['*', 200],
      [`W/${etag}`, 412],
      ['"x"', 412],
      ['', 412],
    ]
    for (const [header, status] of tries) {
      const response = await gateway.patch(
        { retrieval_k: 4 },
        { method: 'PATCH', headers: { 'if-match': header } },
      )
      expect(response.status).toBe(status)
      await gateway.patch({ retrieval_k: null })
      if (header.startsWith('"x",')) expect((await gateway.read()).etag).not.toBe(etag)
    }
  })

  test('does not match after a value was changed and changed back', async () => {
    const { etag } = await gateway.read()
    await gateway.patch({ retrieval_k: 4 })
    await gateway.patch({ retrieval_k: null })
    const late = await gateway.patch({ retrieval_k: 6 }, { headers: { 'if-match': etag } })
    expect(outcome(late)).toBe('412 precondition_failed')
  })
})

test('concurrent unconditional changes do not lose updates', async () => {
  const patches = [
    { retrieval_k: 11 },
    { files: { max_bytes: 12 } },
    { files: { trash_seconds: 13 } },
    { files: { people_picker: false } },
    { responses: { ttl_seconds: 14 } },
    { embedding_model: 'vectors' },
    { reranker_model: 'sorter' },
  ]
  const responses = await Promise.all(patches.map((patch) => gateway.patch(patch)))
  expect(responses.map(outcome)).toEqual(patches.map(() => '200'))
  expect((await gateway.read()).body).toEqual({
    ...shipped,
    retrieval_k: 11,
    embedding_model: 'vectors',
    reranker_model: 'sorter',
    files: { max_bytes: 12, trash_seconds: 13, people_picker: false },
    responses: { ttl_seconds: 14 },
  })
})

describe('a dry run', () => {
  const dryRun = (json: unknown, query = 'true', headers = {}) =>
    gateway.send(`/v1/config?dry_run=${query}`, { as: dora, method: 'PATCH', json, headers })

  test('returns the effect and changes nothing', async () => {
    const { etag } = await gateway.patch({ retrieval_k: 5 })
    const response = await dryRun({ retrieval_k: null, files: { max_bytes: 7 } })
    expect(response.body).toEqual({
      before: { ...shipped, retrieval_k: 5 },
      after: { ...shipped, files: { ...shipped.files, max_bytes: 7 } },
      warnings: [],
    })
    expect((await gateway.read()).etag).toBe(etag)
    const { body } = await gateway.send('/v1/config/history?limit=1')
    expect(body['data']).toMatchObject([{ patch: { retrieval_k: 5 } }])
  })

  test('returns the errors of the change', async () => {
    expect(outcome(await dryRun({ retrieval_k: 51 }))).toBe('422 unprocessable retrieval_k')
    expect(outcome(await dryRun({ rerank_top_n: 5 }))).toBe(
      '422 reranker_not_configured rerank_top_n',
    )
    expect(outcome(await dryRun({ retrieval_k: 5 }, 'true', { 'if-match': '"x"' }))).toBe(
      '412 precondition_failed',
    )
    expect(outcome(await dryRun({ retrieval_k: 5 }, 'yes'))).toBe('422 unprocessable dry_run')
  })

  test('warns of valid changes that may not be intended', async () => {
    const codes = async (json: object) => {
      const warnings: unknown[] = Object(await dryRun(json)).body.warnings
      return warnings.map((warning) => `${Object(warning).code} ${Object(warning).param}`)
    }
    const reranker = { reranker_model: 'sorter' }
    expect(await codes({ ...reranker, rerank_top_n: 3 })).toEqual([])
    expect(await codes({ ...reranker, rerank_top_n: 4 })).toEqual([
      'rerank_top_n_above_retrieval_k rerank_top_n',
    ])
    expect(await codes({ embedding_model: 'vectors', files: { trash_seconds: 60 } })).toEqual([
      'embedding_model_of_new_collections embedding_model',
      'trash_emptied files.trash_seconds',
    ])
    expect(await codes({ files: { trash_seconds: 3_000_000 } })).toEqual([])
  })
})
