import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import {
  ann,
  dora,
  outcome,
  type SettingsGateway,
  startSettingsGateway,
  valueAt,
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
beforeEach(async () => {
  await gateway.send('/v1/config/rollback', { json: { revision: 0 } })
})

describe('a model', () => {
  test('must exist and have the required mode', async () => {
    const patches: [patch: object, outcome: string][] = [
      [{ embedding_model: 'vectors' }, '200'],
      [{ embedding_model: 'local-hash' }, '200'],
      [{ embedding_model: 'nothing' }, '422 model_not_found embedding_model'],
      [{ embedding_model: 'writer' }, '422 model_mode_mismatch embedding_model'],
      [{ embedding_model: 'sorter' }, '422 model_mode_mismatch embedding_model'],
      [{ reranker_model: 'sorter' }, '200'],
      [{ reranker_model: 'sorter-alias' }, '200'],
      [{ reranker_model: 'nothing' }, '422 model_not_found reranker_model'],
      [{ reranker_model: 'local-hash' }, '422 model_not_found reranker_model'],
      [{ reranker_model: 'vectors' }, '422 model_mode_mismatch reranker_model'],
    ]
    for (const [patch, expected] of patches) {
      expect(outcome(await gateway.patch(patch))).toBe(expected)
    }
    expect((await gateway.read()).body).toMatchObject({
      embedding_model: 'local-hash',
      reranker_model: 'sorter-alias',
    })
  })

  test('is required for reranking while rerank_top_n is set', async () => {
    const steps: [patch: object, outcome: string][] = [
      [{ rerank_top_n: 5 }, '422 reranker_not_configured rerank_top_n'],
      [{ rerank_top_n: null }, '200'],
      [{ rerank_top_n: 5, reranker_model: 'sorter' }, '200'],
      [{ reranker_model: null }, '409 reranker_in_use reranker_model'],
      [{ reranker_model: null, rerank_top_n: 6 }, '422 reranker_not_configured rerank_top_n'],
      [{ reranker_model: 'sorter-alias', rerank_top_n: 7 }, '200'],
      [{ reranker_model: null, rerank_top_n: null }, '200'],
      [{ reranker_model: 'sorter' }, '200'],
      [{ rerank_top_n: 8 }, '200'],
    ]
    for (const [patch, expected] of steps) {
      expect(outcome(await gateway.patch(patch))).toBe(expected)
    }
  })

  test('one of two incompatible concurrent changes is refused', async () => {
    for (let round = 0; round < 5; round++) {
      await gateway.patch({ reranker_model: 'sorter', rerank_top_n: null })
      const responses = await Promise.all([
        gateway.patch({ reranker_model: null }),
        gateway.patch({ rerank_top_n: 5 }),
      ])
      expect(responses.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(
        1,
      )
      const { body } = await gateway.read()
      expect(body['rerank_top_n'] === null || body['reranker_model'] !== null).toBe(true)
      await gateway.patch({ reranker_model: null, rerank_top_n: null })
    }
  })
})

describe('a document', () => {
  const set = (ids: readonly unknown[] | null) =>
    gateway.patch({ service_desk: { document_ids: ids } })
  const missing = (index: number) => `422 document_not_found service_desk.document_ids[${index}]`

  test('list is stored without duplicates, in order', async () => {
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.push(await gateway.upload(dora, `order-${name}`))
    const [first = '', second = '', third = ''] = ids
    const response = await set([third, first, third.toUpperCase(), second, first])
    expect(outcome(response)).toBe('200')
    expect(valueAt(response.body, 'service_desk.document_ids')).toEqual([third, first, second])
    expect(valueAt((await set([])).body, 'service_desk.document_ids')).toEqual([])
    expect(valueAt((await set(null)).body, 'service_desk.document_ids')).toBeNull()
  })

  test('must be a file that the administrator may read', async () => {
    const own = await gateway.upload(dora, 'own')
    const foreign = await gateway.upload(ann, 'foreign')
    const folder = await gateway.files.createFolder(
      { userId: userIdOf(dora.subject), groups: dora.groups },
      { name: 'folder', folderId: null, onConflict: 'fail' },
    )
    expect(outcome(await set([own, crypto.randomUUID()]))).toBe(missing(1))
    expect(outcome(await set(['not an id', own]))).toBe(missing(0))
    expect(outcome(await set([own, foreign]))).toBe(missing(1))
    expect(outcome(await set([folder.id]))).toBe(missing(0))
    expect(outcome(await set([own]))).toBe('200')
  })

  test('in the trash is not found', async () => {
    const caller = { userId: userIdOf(dora.subject), groups: dora.groups }
    const id = await gateway.upload(dora, 'thrown-away')
    await gateway.files.remove(
      caller,
      { kind: 'file', id },
      { isRecursive: false, ifVersion: null },
    )
    expect(outcome(await set([id]))).toBe(missing(0))
    await gateway.files.restore(caller, { kind: 'file', id }, { onConflict: 'fail' })
    expect(outcome(await set([id]))).toBe('200')
  })

  test('list may have 500 ids', async () => {
    const id = await gateway.upload(dora, 'many-times')
    expect(outcome(await set(Array.from({ length: 500 }, () => id)))).toBe('200')
    expect(outcome(await set(Array.from({ length: 501 }, () => id)))).toBe(
      '422 unprocessable service_desk.document_ids',
    )
  })
})
