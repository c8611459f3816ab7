import { afterAll, beforeAll, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { readApiDocument } from '#test/support/api-document.ts'
import { type ConformingClient, createConformingClient } from '#test/support/conforming-client.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** The same conformance test for administration and for compatible surfaces. */

let gateway: Gateway
let client: ConformingClient

beforeAll(async () => {
  gateway = await startGateway()
  const document = await readApiDocument(gateway)
  const authorization = `Bearer ${await gateway.token(['admins'], 'conforming')}`
  client = createConformingClient(gateway, { document, headers: { authorization } })
})
afterAll(() => gateway.stop())

const idOf = (object: unknown) => String(asRecord(object)['id'])

test('configuration', async () => {
  await client.call('GET /v1/config')
  await client.call('GET /v1/config/schema')
  await client.call('PATCH /v1/config', { json: { retrieval_k: 5 } })
  await client.call('PATCH /v1/config', { query: { dry_run: 'true' }, json: { retrieval_k: 6 } })
  await client.call('PATCH /v1/config', { json: { retrieval_k: 51 }, status: 422 })
  const history = await client.call('GET /v1/config/history')
  expect(history['data']).toBeArray()
  await client.call('POST /v1/config/rollback', { json: { revision: 1 } })
  await client.call('PATCH /v1/config', {
    json: { retrieval_k: 7 },
    headers: { 'if-match': '"stale"' },
    status: 412,
  })
})

test('health', async () => {
  await client.call('GET /v1/database')
  await client.call('GET /v1/engines')
})

test('translations', async () => {
  const path = { language: 'cs' }
  await client.call('PATCH /v1/translations/{language}', {
    path,
    json: { menu: { save: 'Uložit' } },
  })
  await client.call('GET /v1/translations')
  await client.call('GET /v1/translations/status')
  await client.call('POST /v1/translations/reset')
  await client.call('PATCH /v1/translations/{language}', {
    path: { language: 'no language' },
    json: {},
    status: 422,
  })
})

test('branding', async () => {
  const theme = await client.call('GET /v1/branding/theme')
  const { logo_url: _, ...own } = theme
  await client.call('PUT /v1/branding/theme', { json: own })
  await client.call('POST /v1/branding/theme/preview', { json: own })
  await client.call('POST /v1/branding/theme/reset')
  await client.call('GET /v1/branding/logo')
  const body = new FormData()
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>'
  body.append('file', new File([svg], 'logo.svg', { type: 'image/svg+xml' }))
  await client.call('POST /v1/branding/logo', { body })
  await client.call('GET /v1/branding/logo')
  await client.call('DELETE /v1/branding/logo')
})

test('vector stores', async () => {
  const body = new FormData()
  body.append('file', new File(['The harbour opens at six.'], 'a.txt', { type: 'text/plain' }))
  const file = idOf(await client.call('POST /v1/files', { body }))
  const path = {
    id: idOf(await client.call('POST /v1/vector_stores', { json: { name: 'ships' } })),
  }
  await client.call('GET /v1/vector_stores')
  await client.call('GET /v1/vector_stores/{vector_store_id}', { path })
  await client.call('POST /v1/vector_stores/{vector_store_id}', { path, json: { name: 'boats' } })
  await client.call('POST /v1/vector_stores/{vector_store_id}/files', {
    path,
    json: { file_id: file },
  })
  const member = { ...path, file_id: file }
  await eventually('the file is indexed', async () => {
    const found = await client.call('GET /v1/vector_stores/{vector_store_id}/files/{file_id}', {
      path: member,
    })
    return found['status'] === 'completed'
  })
  await client.call('GET /v1/vector_stores/{vector_store_id}/files', { path })
  await client.call('POST /v1/vector_stores/{vector_store_id}/search', {
    path,
    json: { query: 'harbour' },
  })
  const batch = idOf(
    await client.call('POST /v1/vector_stores/{vector_store_id}/file_batches', {
      path,
      json: { file_ids: [file] },
    }),
  )
  const batchPath = { ...path, batch_id: batch }
  await client.call('GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}', {
    path: batchPath,
  })
  await client.call('GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files', {
    path: batchPath,
  })
  await client.call('DELETE /v1/vector_stores/{vector_store_id}/files/{file_id}', { path: member })
  await client.call('DELETE /v1/vector_stores/{vector_store_id}', { path })
})

test('moving to another embedding model', async () => {
  await client.call('POST /v1/collections', { json: { name: 'to-be-moved' } })
  const json = { embedding_model: 'local-hash', chunking: { max_tokens: 200, overlap_tokens: 20 } }
  await client.call('POST /v1/embeddings/reindex', { json: { ...json, dry_run: true } })
  const path = { id: idOf(await client.call('POST /v1/embeddings/reindex', { json })) }
  await client.call('GET /v1/embeddings/reindex')
  await client.call('GET /v1/embeddings/reindex/{reindex_id}', { path })
  await client.call('GET /v1/embeddings/reindex/{reindex_id}/failures', { path })
  await client.call('GET /v1/embeddings/reindex/{reindex_id}', {
    path: { id: 'none' },
    status: 404,
  })
})

test('the Messages-compatible surface', async () => {
  const json = {
    model: 'demo',
    max_tokens: 64,
    messages: [{ role: 'user', content: 'Say hello.' }],
  }
  await client.call('GET /compat/v1/models')
  await client.call('GET /compat/v1/models/{name}', { path: { name: 'demo' } })
  await client.call('POST /compat/v1/messages', { json })
  await client.call('POST /compat/v1/messages', { json: { ...json, stream: true } })
  await client.call('POST /compat/v1/messages/count_tokens', { json })
  await client.call('POST /compat/v1/messages', { json: { ...json, model: 'none' }, status: 404 })
})

test('users, groups and the audit log', async () => {
  const me = await client.call('GET /v1/me')
  const json = { name: 'editors', permissions: ['can_access_api', 'can_edit_config'] }
  const path = { id: idOf(await client.call('POST /v1/groups', { json })) }
  await client.call('POST /v1/groups', { json, status: 409 })
  await client.call('GET /v1/groups')
  await client.call('GET /v1/groups/{group_id}', { path })
  await client.call('PATCH /v1/groups/{group_id}', { path, json: { description: 'They edit.' } })
  const member = { ...path, user_id: idOf(me) }
  await client.call('PUT /v1/groups/{group_id}/members/{user_id}', { path: member })
  await client.call('GET /v1/groups/{group_id}/members', { path })
  await client.call('DELETE /v1/groups/{group_id}/members/{user_id}', { path: member })
  await client.call('DELETE /v1/groups/{group_id}', { path })

  const made = await client.call('POST /v1/service-accounts', {
    json: { name: 'nightly', groups: ['users'] },
  })
  const account = { id: idOf(made) }
  const nameOfKey = { path: account, json: { name: 'of the account' } }
  const key = await client.call(
    'POST /v1/service-accounts/{service_account_id}/api-keys',
    nameOfKey,
  )
  await client.call('GET /v1/service-accounts/{service_account_id}/api-keys', { path: account })
  await client.call('DELETE /v1/service-accounts/{service_account_id}/api-keys/{key_id}', {
    path: { ...account, key_id: idOf(key) },
  })
  await client.call('GET /v1/users', { query: { q: 'night' } })
  await client.call('GET /v1/users/{user_id}', { path: account })
  await client.call('PATCH /v1/users/{user_id}', { path: account, json: { disabled: true } })
  await client.call('DELETE /v1/service-accounts/{service_account_id}', { path: account })
  await client.call('GET /v1/audit-log', { query: { limit: '5' } })
})

test('probes', async () => {
  await client.call('GET /livez')
  await client.call('GET /readyz')
  await client.call('GET /compat')
  await client.call('GET /metrics')
  await client.call('GET /openapi.json')
  await client.call('GET /docs')
  await client.call('GET /scalar')
})
