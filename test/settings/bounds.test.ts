import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import {
  bodyWith,
  outcome,
  type SettingsGateway,
  startSettingsGateway,
  valueAt,
} from './settings-gateway.ts'

let database: TestDatabase
let gateway: SettingsGateway

beforeAll(async () => {
  database = await openTestDatabase()
  // `rerank_top_n` requires a reranker.
  gateway = await startSettingsGateway(database, { toml: '[retrieval]\nreranker_model = "sorter"' })
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const wholeNumbers: readonly [key: string, minimum: number, maximum: number][] = [
  ['retrieval_k', 1, 50],
  ['rerank_top_n', 1, 50],
  ['files.max_bytes', 1, 5_497_558_138_880],
  ['files.trash_seconds', 0, 315_360_000],
  ['responses.ttl_seconds', 1, 315_360_000],
]
const refused = (key: string) => `422 unprocessable ${key}`
const error = (body: object) => valueAt(body, 'error.message')

describe.each([...wholeNumbers])('%s', (key, minimum, maximum) => {
  test('accepts its bounds and nothing beyond them', async () => {
    for (const value of [minimum, maximum]) {
      const response = await gateway.patch(bodyWith(key, value))
      expect(outcome(response)).toBe('200')
      expect(valueAt(response.body, key)).toBe(value)
    }
    for (const value of [minimum - 1, maximum + 1, -maximum, 1e300]) {
      expect(outcome(await gateway.patch(bodyWith(key, value)))).toBe(refused(key))
    }
    expect(valueAt((await gateway.read()).body, key)).toBe(maximum)
  })

  test('accepts only whole numbers, in any notation', async () => {
    const spelled = JSON.stringify(bodyWith(key, 0)).replace('0', '7.0')
    const response = await gateway.patch(spelled)
    expect(outcome(response)).toBe('200')
    expect(valueAt(response.body, key)).toBe(7)
    for (const value of ['7', '', true, 7.5, [7], { value: 7 }]) {
      const wrong = await gateway.patch(bodyWith(key, value))
      expect(outcome(wrong)).toBe(refused(key))
      expect(error(wrong.body)).toBe(`"${key}" must be a whole number.`)
    }
  })

  test('is reset by null', async () => {
    await gateway.patch(bodyWith(key, 7))
    const schema = (await gateway.send('/v1/config/schema')).body
    const response = await gateway.patch(bodyWith(key, null))
    expect(valueAt(response.body, key)).toEqual(Object(Object(schema['keys'])[key]).default)
  })
})

test('booleans and names are not converted from other types', async () => {
  for (const value of [0, 1, 'true', 'off', [], {}]) {
    const response = await gateway.patch(bodyWith('files.people_picker', value))
    expect(outcome(response)).toBe(refused('files.people_picker'))
  }
  for (const key of ['embedding_model', 'reranker_model']) {
    for (const value of ['', 5, true, ['vectors'], {}]) {
      expect(outcome(await gateway.patch({ [key]: value }))).toBe(refused(key))
    }
  }
})

test('document_ids is a limited list of ids', async () => {
  const key = 'service_desk.document_ids'
  for (const value of ['x', 5, true, {}]) {
    expect(outcome(await gateway.patch(bodyWith(key, value)))).toBe(refused(key))
  }
  for (const value of [5, null, ['x'], 'x'.repeat(101)]) {
    expect(outcome(await gateway.patch(bodyWith(key, ['', value])))).toBe(refused(`${key}[1]`))
  }
  const ids = Array.from({ length: 501 }, () => crypto.randomUUID())
  expect(outcome(await gateway.patch(bodyWith(key, ids)))).toBe(refused(key))
  expect(outcome(await gateway.patch(bodyWith(key, ids.slice(1))))).toBe(
    `422 document_not_found ${key}[0]`,
  )
})

test('unknown fields are refused by path at any depth', async () => {
  const bodies: [body: string, param: string][] = [
    ['{"retrieval_n": 3}', 'retrieval_n'],
    ['{"retrieval_n": null}', 'retrieval_n'],
    ['{"retrieval_k": 4, "files": {"max_bytes": 5, "min_bytes": 1}}', 'files.min_bytes'],
    ['{"service_desk": {"documents": []}}', 'service_desk.documents'],
    ['{"files.max_bytes": 5}', 'files.max_bytes'],
    ['{"files": {"max.bytes": 5}}', 'files.max.bytes'],
    ['{"files": {"files": {"max_bytes": 5}}}', 'files.files'],
    ['{"__proto__": {"retrieval_k": 4}}', '__proto__'],
    ['{"constructor": 1}', 'constructor'],
    ['{"files": {"__proto__": {"max_bytes": 5}}}', 'files.__proto__'],
    ['{"": 1}', ''],
  ]
  const { etag } = await gateway.read()
  for (const [body, param] of bodies) {
    const response = await gateway.patch(body)
    expect(response.status).toBe(422)
    expect(Object(response.body['error'])).toMatchObject({ code: 'unknown_field', param })
  }
  expect((await gateway.read()).etag).toBe(etag)
})

test('collection_name is refused with the name of its replacement', async () => {
  const bodies = [
    { service_desk: { collection_name: 'desk' } },
    { service_desk: { collection_name: null, document_ids: [] } },
    { service_desk: [{ search: { collection_name: 'desk' } }] },
    { service_desk: { document_ids: [{ collection_name: 'desk' }] } },
  ]
  for (const body of bodies) {
    const response = await gateway.patch(body)
    expect(outcome(response)).toBe('422 collection_name_removed service_desk.collection_name')
    expect(String(error(response.body))).toContain('service_desk.document_ids')
  }
})

test('a body must be a JSON object of limited size', async () => {
  for (const body of ['[]', '"x"', '5', 'null', 'true']) {
    expect(outcome(await gateway.patch(body))).toBe('422 unprocessable')
  }
  for (const body of ['{', '', '{"retrieval_k": 03}', 'retrieval_k=3']) {
    expect(outcome(await gateway.patch(body))).toBe('400 malformed_json')
  }
  const long = JSON.stringify({ embedding_model: 'x'.repeat(300_000) })
  expect(outcome(await gateway.patch(long))).toBe('413 request_too_large')
  expect(outcome(await gateway.patch({ files: 5 }))).toBe(refused('files'))
  expect(outcome(await gateway.patch({ files: [] }))).toBe(refused('files'))
})

test('both media types of a merge patch are accepted', async () => {
  for (const type of ['application/json', 'application/merge-patch+json; charset=utf-8']) {
    const response = await gateway.patch({ retrieval_k: 9 }, { headers: { 'content-type': type } })
    expect(outcome(response)).toBe('200')
  }
})
