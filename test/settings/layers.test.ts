import { afterEach, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { openDatabase } from '#db/client.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import {
  bodyWith,
  outcome,
  type SettingsGateway,
  startSettingsGateway,
} from './settings-gateway.ts'

let database: TestDatabase
let gateway: SettingsGateway | undefined

beforeEach(async () => {
  database = await openTestDatabase()
})
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
  await database.close()
})

/** Restarts the process with this configuration. */
async function restart(options: Parameters<typeof startSettingsGateway>[1] = {}) {
  await gateway?.stop()
  gateway = await startSettingsGateway(database, options)
  return gateway
}

async function keyOf(key: string): Promise<object> {
  const { body } = Object(await gateway?.send('/v1/config/schema'))
  return Object(Object(body.keys)[key])
}

test('a change survives a restart and takes precedence over the file', async () => {
  const toml = '[retrieval]\nk = 8\n[files]\nbytes_max = 1_000'
  const first = await restart({ toml })
  expect((await first.read()).body).toMatchObject({ retrieval_k: 8, files: { max_bytes: 1_000 } })
  const changed = await first.patch({ retrieval_k: 9 })
  const second = await restart({ toml })
  const read = await second.read()
  expect(read.body).toMatchObject({ retrieval_k: 9, files: { max_bytes: 1_000 } })
  expect(read.etag).toBe(changed.etag)
  expect((await second.patch({ retrieval_k: null })).body).toMatchObject({ retrieval_k: 8 })
})

test('null switches off what the file has set, until another value is set', async () => {
  const toml = '[retrieval]\nreranker_model = "sorter"\nrerank_top_n = 2'
  const first = await restart({ toml })
  const rerank = async (of: SettingsGateway) =>
    outcome(await of.send('/v1/rerank', { json: { query: 'q', documents: ['a'] } }))
  const off = await first.patch({ reranker_model: null, rerank_top_n: null })
  expect(off.body).toMatchObject({ reranker_model: null, rerank_top_n: null })
  expect(await rerank(first)).toBe('400 reranker_not_configured model')
  const again = await restart({ toml })
  expect((await again.read()).body).toMatchObject({ reranker_model: null, rerank_top_n: null })
  expect(await keyOf('reranker_model')).toMatchObject({ source: 'database' })
  const on = await again.patch({ reranker_model: 'sorter' })
  expect(on.body).toMatchObject({ reranker_model: 'sorter' })
})

test('a change survives closing the database', async () => {
  const { databaseUrl, dataFolder } = database.place
  if (databaseUrl === undefined) return
  await (await restart()).patch({ retrieval_k: 9 })
  const again = await openDatabase({ databaseUrl, dataFolder, connectionsMax: 2, log: quietLog })
  const reopened = await startSettingsGateway(again)
  expect((await reopened.read()).body['retrieval_k']).toBe(9)
  await reopened.stop()
  await again.close()
})

test('an environment variable locks a key until it is removed', async () => {
  const free = await restart()
  await free.patch({ retrieval_k: 9, embedding_model: 'vectors' })
  const { etag } = await free.read()

  const locked = await restart({ environment: { SLUICE_RETRIEVAL_K: '20' } })
  expect((await locked.read()).body).toMatchObject({
    retrieval_k: 20,
    embedding_model: 'vectors',
  })
  // Different values have different tags.
  expect((await locked.read()).etag).not.toBe(etag)
  for (const value of [5, 20, null]) {
    const response = await locked.patch({ retrieval_k: value, embedding_model: 'local-hash' })
    expect(outcome(response)).toBe('409 config_locked retrieval_k')
    expect(response.text).toContain('SLUICE_RETRIEVAL_K')
  }
  expect(outcome(await locked.patch({ embedding_model: 'local-hash' }))).toBe('200')

  const freed = await restart()
  expect((await freed.read()).body).toMatchObject({
    retrieval_k: 9,
    embedding_model: 'local-hash',
  })
  expect(outcome(await freed.patch({ retrieval_k: 10 }))).toBe('200')
})

test('a section with a locked key cannot be reset', async () => {
  const locked = await restart({ environment: { SLUICE_FILE_BYTES_MAX: '4096' } })
  expect((await locked.read()).body).toMatchObject({ files: { max_bytes: 4_096 } })
  expect(outcome(await locked.patch({ files: null }))).toBe('409 config_locked files.max_bytes')
  expect(outcome(await locked.patch({ files: { trash_seconds: 60 } }))).toBe('200')
})

test('a rollback does not change locked keys', async () => {
  const free = await restart()
  await free.patch({ files: { people_picker: false } })
  await free.patch({ retrieval_k: 9 })
  const locked = await restart({ environment: { SLUICE_RETRIEVAL_K: '20' } })
  await locked.patch({ files: { people_picker: true } })
  const { body } = await locked.send('/v1/config/history')
  const [, second, first] = Object(body['data'])
  const back = (revision: number) => locked.send('/v1/config/rollback', { json: { revision } })
  // That revision had another value of the locked key.
  expect(outcome(await back(first.revision))).toBe('409 config_locked retrieval_k')
  expect((await back(second.revision)).body).toMatchObject({
    retrieval_k: 20,
    files: { people_picker: false },
  })
})

test('the schema has the source and the lock of every key', async () => {
  const options = {
    toml: '[retrieval]\nreranker_model = "sorter"\nembedding_model = "vectors"\n[files]\ntrash_s = 60',
    environment: { SLUICE_RERANK_TOP_N: '5', SLUICE_EMBEDDING_MODEL: 'local-hash' },
  }
  const here = await restart(options)
  await here.patch({ files: { trash_seconds: 90 } })
  expect(await keyOf('retrieval_k')).toEqual({
    default: 3,
    configured: 3,
    source: 'default',
    config_key: 'retrieval.k',
    locked_by: null,
    restart_required: false,
  })
  expect(await keyOf('reranker_model')).toMatchObject({ default: null, source: 'file' })
  expect(await keyOf('files.trash_seconds')).toMatchObject({
    default: 2_592_000,
    configured: 60,
    source: 'database',
  })
  expect(await keyOf('rerank_top_n')).toMatchObject({
    source: 'environment',
    locked_by: 'SLUICE_RERANK_TOP_N',
  })
  expect(await keyOf('embedding_model')).toMatchObject({
    default: 'local',
    source: 'environment',
    locked_by: 'SLUICE_EMBEDDING_MODEL',
  })
  expect(await keyOf('service_desk.document_ids')).toMatchObject({
    config_key: null,
    source: 'default',
  })
  const { schema } = Object((await here.send('/v1/config/schema')).body)
  expect(schema.properties.files.properties.trash_seconds).toMatchObject({
    title: 'Time in the trash',
    'x-unit': 'seconds',
  })
  expect(schema.properties.reranker_model).toMatchObject({ 'x-reference': 'rerank model' })
  expect(schema.properties.limits.properties.default.properties.stored_bytes).toMatchObject({
    'x-unit': 'bytes',
  })
})

test('every environment variable of a setting locks it', async () => {
  const here = await restart({
    environment: {
      SLUICE_RETRIEVAL_K: '4',
      SLUICE_RERANK_TOP_N: '2',
      SLUICE_RERANKER_MODEL: 'sorter',
      SLUICE_EMBEDDING_MODEL: 'vectors',
      SLUICE_FILE_BYTES_MAX: '1000',
      SLUICE_FILE_TRASH_S: '0',
      SLUICE_RESPONSES_TTL_S: '60',
    },
  })
  expect((await here.read()).body).toEqual({
    retrieval_k: 4,
    rerank_top_n: 2,
    embedding_model: 'vectors',
    reranker_model: 'sorter',
    service_desk: { document_ids: null, model: null },
    files: { max_bytes: 1_000, trash_seconds: 0, people_picker: true },
    models: { access: [] },
    responses: { ttl_seconds: 60 },
    limits: { default: {}, group: {}, user: {}, model: {} },
    budgets: { default: {}, user: {}, group: {}, key: {} },
  })
  const { body } = await here.send('/v1/config/schema')
  const keys: [string, { locked_by: string | null }][] = Object.entries(Object(body['keys']))
  const unlocked = keys.filter(([, { locked_by }]) => locked_by === null).map(([key]) => key)
  expect(unlocked).toEqual([
    'service_desk.document_ids',
    'service_desk.model',
    'files.people_picker',
    'models.access',
    'limits.default',
    'limits.group',
    'limits.user',
    'limits.model',
    'budgets.default',
    'budgets.user',
    'budgets.group',
    'budgets.key',
  ])
  for (const [key] of keys) {
    const response = await here.patch(bodyWith(key, null))
    expect(outcome(response)).toBe(unlocked.includes(key) ? '200' : `409 config_locked ${key}`)
  }
})

test('the schema is a JSON Schema of the values', async () => {
  const here = await restart()
  const { body } = await here.send('/v1/config/schema')
  expect(body['schema']).toMatchObject({
    type: 'object',
    additionalProperties: false,
    properties: {
      retrieval_k: { type: 'integer', minimum: 1, maximum: 50, default: 3 },
      rerank_top_n: {
        anyOf: [{ type: 'integer', minimum: 1, maximum: 50 }, { type: 'null' }],
        default: null,
      },
      files: {
        type: 'object',
        properties: { people_picker: { type: 'boolean', default: true } },
      },
    },
  })
  const { Validator } = await import('@cfworker/json-schema')
  const validator = new Validator(Object(body['schema']), '2020-12')
  expect(validator.validate((await here.read()).body).valid).toBe(true)
  expect(validator.validate({ retrieval_k: 51 }).valid).toBe(false)
  expect(validator.validate({ files: { max_bytes: '5' } }).valid).toBe(false)
})

test('an invalid value of another release is ignored and kept', async () => {
  const here = await restart()
  await here.patch({ retrieval_k: 9 })
  const after = JSON.stringify({ retrieval_k: 900, files: { max_bytes: 7 }, later: { key: [1] } })
  await database.drizzle.execute(sql`update settings_revision set after = ${after}`)
  const later = await restart()
  expect((await later.read()).body).toMatchObject({ retrieval_k: 3, files: { max_bytes: 7 } })
  expect(await keyOf('retrieval_k')).toMatchObject({ source: 'default' })
  expect(later.logLines.filter((line) => line.includes('"key":"retrieval_k"'))).toHaveLength(1)
  await later.patch({ files: { people_picker: false } })
  const { body } = await later.send('/v1/config/history?limit=1')
  expect(Object(body['data'])[0].after).toEqual({
    retrieval_k: 900,
    files: { max_bytes: 7, people_picker: false },
    later: { key: [1] },
  })
})
