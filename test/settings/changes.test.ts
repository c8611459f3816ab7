import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { ann, dora, outcome, type SettingsWorld, startSettingsWorld, upstreamKey } from './world.ts'

let database: TestDatabase
let world: SettingsWorld

beforeAll(async () => {
  database = await openTestDatabase()
  world = await startSettingsWorld(database)
})
afterAll(async () => {
  await world.stop()
  await database.close()
})

const shipped = {
  retrieval_k: 3,
  rerank_top_n: null,
  embedding_model: 'local-hash',
  reranker_model: null,
  service_desk: { document_ids: null },
  files: { max_bytes: 5_368_709_120, trash_seconds: 2_592_000, people_picker: true },
  responses: { ttl_seconds: 2_592_000 },
}

beforeEach(async () => {
  const answer = await world.send('/v1/config/rollback', { json: { revision: 0 } })
  expect(answer.body).toEqual(shipped)
})

describe('reading', () => {
  test('shows plain values to everybody who may use the API, and a tag of exactly these', async () => {
    const first = await world.read()
    expect(outcome(first)).toBe('200')
    expect(first.body).toEqual(shipped)
    expect(first.etag).toMatch(/^"[^"]+"$/)
    expect((await world.read()).etag).toBe(first.etag)
    const changed = await world.patch({ retrieval_k: 4 })
    expect(changed.etag).not.toBe(first.etag)
    expect((await world.read()).etag).toBe(changed.etag)
  })

  test('is open to who may use the API, and changing to who may edit the configuration', async () => {
    const outsider = { subject: 'nils', groups: ['outsiders'] }
    const readings = ['/v1/config', '/v1/config/schema']
    for (const path of readings) {
      expect(outcome(await world.send(path, { as: ann }))).toBe('200')
      expect(outcome(await world.send(path, { as: outsider }))).toBe('403 permission_denied')
    }
    const editing = (as: typeof ann) => [
      world.patch({ retrieval_k: 5 }, { as }),
      world.patch('{', { as }),
      world.send('/v1/config/history', { as }),
      world.send('/v1/config/rollback', { as, json: { revision: 0 } }),
    ]
    for (const answer of [...editing(ann), ...editing(outsider)]) {
      expect(outcome(await answer)).toBe('403 permission_denied')
    }
    expect((await world.read()).body).toEqual(shipped)
  })

  test('never shows a secret of the configuration', async () => {
    await world.patch({ embedding_model: 'vectors' })
    const paths = ['/v1/config', '/v1/config/schema', '/v1/config/history']
    const texts = await Promise.all(paths.map(async (path) => (await world.send(path)).text))
    const dry = await world.patch({ retrieval_k: 5 }, { method: 'PATCH' })
    for (const text of [...texts, dry.text, ...world.logLines]) {
      expect(text).not.toContain(upstreamKey)
    }
    expect(texts.join('')).not.toMatch(/secret|jwt|gpu/i)
  })
})

describe('a merge patch', () => {
  test('changes what it names and nothing else', async () => {
    await world.patch({ retrieval_k: 5, files: { max_bytes: 1_000 } })
    const answer = await world.patch({ files: { people_picker: false }, responses: {} })
    expect(answer.body).toEqual({
      ...shipped,
      retrieval_k: 5,
      files: { max_bytes: 1_000, trash_seconds: 2_592_000, people_picker: false },
    })
    expect((await world.read()).body).toEqual(answer.body)
  })

  test('puts back what is null, and with a section all that is in it', async () => {
    await world.patch({ retrieval_k: 5, files: { max_bytes: 1_000, people_picker: false } })
    expect((await world.patch({ retrieval_k: null })).body['retrieval_k']).toBe(3)
    expect((await world.patch({ files: null })).body).toEqual(shipped)
  })

  test('that changes nothing is no change', async () => {
    const { etag } = await world.patch({ retrieval_k: 5 })
    expect((await world.patch({ retrieval_k: 5 })).etag).toBe(etag)
    expect((await world.patch({})).etag).toBe(etag)
    expect((await world.patch({ files: { max_bytes: null } })).etag).toBe(etag)
  })

  test('of which one part cannot be is not made at all', async () => {
    const answer = await world.patch({ retrieval_k: 5, files: { max_bytes: 0 } })
    expect(outcome(answer)).toBe('422 unprocessable files.max_bytes')
    expect((await world.read()).body).toEqual(shipped)
  })
})

describe('If-Match', () => {
  test('of two writers who have read the same, the second is told', async () => {
    const { etag } = await world.read()
    const headers = { 'if-match': etag }
    const first = await world.patch({ retrieval_k: 5 }, { headers })
    expect(outcome(first)).toBe('200')
    const second = await world.patch({ files: { max_bytes: 9 } }, { headers })
    expect(outcome(second)).toBe('412 precondition_failed')
    expect(second.etag).toBe(first.etag)
    const third = await world.patch(
      { files: { max_bytes: 9 } },
      { headers: { 'if-match': second.etag } },
    )
    expect(third.body).toMatchObject({ retrieval_k: 5, files: { max_bytes: 9 } })
  })

  test('of writers at the same moment exactly one is heard', async () => {
    const { etag } = await world.read()
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        world.patch({ retrieval_k: 10 + index }, { headers: { 'if-match': etag } }),
      ),
    )
    const heard = answers.filter(({ status }) => status === 200)
    expect(heard).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(7)
    expect((await world.read()).body).toEqual(Object(heard[0]?.body))
  })

  test('may name several tags, or any; a weak or a foreign one is none', async () => {
    const { etag } = await world.read()
    const tries: [header: string, status: number][] = [
      [`"x", ${etag}`, 200],
      ['*', 200],
      [`W/${etag}`, 412],
      ['"x"', 412],
      ['', 412],
    ]
    for (const [header, status] of tries) {
      const answer = await world.patch(
        { retrieval_k: 4 },
        { method: 'PATCH', headers: { 'if-match': header } },
      )
      expect(answer.status).toBe(status)
      await world.patch({ retrieval_k: null })
      if (header.startsWith('"x",')) expect((await world.read()).etag).not.toBe(etag)
    }
  })

  test('a value that came back is not what was read before', async () => {
    const { etag } = await world.read()
    await world.patch({ retrieval_k: 4 })
    await world.patch({ retrieval_k: null })
    const late = await world.patch({ retrieval_k: 6 }, { headers: { 'if-match': etag } })
    expect(outcome(late)).toBe('412 precondition_failed')
  })
})

test('changes at the same moment without a condition lose nothing of each other', async () => {
  const patches = [
    { retrieval_k: 11 },
    { files: { max_bytes: 12 } },
    { files: { trash_seconds: 13 } },
    { files: { people_picker: false } },
    { responses: { ttl_seconds: 14 } },
    { embedding_model: 'vectors' },
    { reranker_model: 'sorter' },
  ]
  const answers = await Promise.all(patches.map((patch) => world.patch(patch)))
  expect(answers.map(outcome)).toEqual(patches.map(() => '200'))
  expect((await world.read()).body).toEqual({
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
    world.send(`/v1/config?dry_run=${query}`, { as: dora, method: 'PATCH', json, headers })

  test('says what would be, and changes nothing', async () => {
    const { etag } = await world.patch({ retrieval_k: 5 })
    const answer = await dryRun({ retrieval_k: null, files: { max_bytes: 7 } })
    expect(answer.body).toEqual({
      before: { ...shipped, retrieval_k: 5 },
      after: { ...shipped, files: { ...shipped.files, max_bytes: 7 } },
      warnings: [],
    })
    expect((await world.read()).etag).toBe(etag)
    const { body } = await world.send('/v1/config/history?limit=1')
    expect(body['data']).toMatchObject([{ patch: { retrieval_k: 5 } }])
  })

  test('refuses what the change would refuse', async () => {
    expect(outcome(await dryRun({ retrieval_k: 51 }))).toBe('422 unprocessable retrieval_k')
    expect(outcome(await dryRun({ rerank_top_n: 5 }))).toBe(
      '422 reranker_not_configured rerank_top_n',
    )
    expect(outcome(await dryRun({ retrieval_k: 5 }, 'true', { 'if-match': '"x"' }))).toBe(
      '412 precondition_failed',
    )
    expect(outcome(await dryRun({ retrieval_k: 5 }, 'yes'))).toBe('422 unprocessable dry_run')
  })

  test('warns of what is allowed and perhaps not meant', async () => {
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
