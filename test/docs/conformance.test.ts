import { afterAll, beforeAll, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { readApiDocument } from '#test/support/api-document.ts'
import { type ConformingClient, createConformingClient } from '#test/support/conforming-client.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/**
 * Calls every endpoint as a client does. Every request and response body is checked against the
 * document: status, media type, schema, and no undocumented field.
 */

let gateway: Gateway
let client: ConformingClient

beforeAll(async () => {
  gateway = await startGateway({ model: [{ name: 'house', upstreams: ['demo'] }] })
  const document = await readApiDocument(gateway)
  const authorization = `Bearer ${await gateway.token(['admins'], 'conforming')}`
  client = createConformingClient(gateway, { document, headers: { authorization } })
})
afterAll(() => gateway.stop())

const idOf = (object: unknown) => String(asRecord(object)['id'])
const notThere = '0198a000-0000-7000-8000-000000000000'

test('models, embeddings, reranking and token counts', async () => {
  await client.call('GET /v1/models')
  await client.call('GET /v1/models/{name}', { path: { name: 'demo' } })
  await client.call('GET /v1/models/{name}', { path: { name: 'none' }, status: 404 })
  await client.call('POST /v1/embeddings', { json: { model: 'local-hash', input: ['one', 'two'] } })
  await client.call('POST /v1/rerank', {
    json: { model: 'house', query: 'one', documents: ['one', 'two'] },
    status: 400,
  })
})

test('responses', async () => {
  const input = { model: 'demo', input: 'Say hello.' }
  const made = await client.call('POST /v1/responses', { json: input })
  const path = { id: idOf(made) }
  await client.call('GET /v1/responses/{response_id}', { path })
  await client.call('GET /v1/responses/{response_id}/input_items', { path })
  await client.call('POST /v1/responses', { json: { ...input, previous_response_id: path.id } })
  await client.call('POST /v1/responses', { json: { ...input, stream: true } })
  await client.call('POST /v1/responses/input_tokens', { json: input })
  await client.call('POST /v1/responses/compact', { json: input })
  await client.call('DELETE /v1/responses/{response_id}', { path })
  await client.call('GET /v1/responses/{response_id}', { path, status: 404 })
  const later = await client.call('POST /v1/responses', { json: { ...input, background: true } })
  await client.call('POST /v1/responses/{response_id}/cancel', { path: { id: idOf(later) } })
  await client.call('POST /v1/responses', { json: { ...input, model: 'none' }, status: 404 })
})

test('conversations', async () => {
  const path = { id: idOf(await client.call('POST /v1/conversations', { json: {} })) }
  await client.call('GET /v1/conversations/{conversation_id}', { path })
  await client.call('POST /v1/conversations/{conversation_id}', {
    path,
    json: { metadata: { topic: 'x' } },
  })
  const items = [{ type: 'message', role: 'user', content: 'Hello.' }]
  const added = await client.call('POST /v1/conversations/{conversation_id}/items', {
    path,
    json: { items },
  })
  const [first] = Array.isArray(added['data']) ? added['data'] : []
  const item = { ...path, item_id: idOf(first) }
  await client.call('GET /v1/conversations/{conversation_id}/items', {
    path,
    query: { limit: '5' },
  })
  await client.call('GET /v1/conversations/{conversation_id}/items/{item_id}', { path: item })
  await client.call('DELETE /v1/conversations/{conversation_id}/items/{item_id}', { path: item })
  await client.call('DELETE /v1/conversations/{conversation_id}', { path })
  await client.call('GET /v1/conversations/{conversation_id}', { path, status: 404 })
})

test('API keys', async () => {
  const path = { id: idOf(await client.call('POST /v1/api-keys', { json: { name: 'one' } })) }
  await client.call('GET /v1/api-keys', { query: { limit: '1' } })
  await client.call('DELETE /v1/api-keys/{api_key_id}', { path })
  await client.call('DELETE /v1/api-keys/{api_key_id}', { path, status: 404 })
  await client.call('GET /v1/api-keys', { query: { limit: '0' }, status: 422 })
})

test('agents', async () => {
  const json = { name: 'helper', model: 'demo', instructions: 'Be short.' }
  const path = { id: idOf(await client.call('POST /v1/agents', { json })) }
  await client.call('GET /v1/agents')
  await client.call('GET /v1/agents/{agent_id}', { path })
  await client.call('PATCH /v1/agents/{agent_id}', { path, json: { description: 'Helps.' } })
  await client.call('DELETE /v1/agents/{agent_id}', { path })
  await client.call('GET /v1/agents/{agent_id}', { path, status: 404 })
})

test('files and folders', async () => {
  const folder = idOf(await client.call('POST /v1/folders', { json: { name: 'papers' } }))
  const path = { id: await upload('first.txt', 'The harbour opens at six.') }
  await client.call('GET /v1/files')
  await client.call('GET /v1/files/{file_id}', { path })
  await client.call('PATCH /v1/files/{file_id}', { path, json: { name: 'renamed.txt' } })
  await client.call('POST /v1/files/{file_id}/move', { path, json: { folder_id: folder } })
  const copy = idOf(
    await client.call('POST /v1/files/{file_id}/copy', { path, json: { folder_id: null } }),
  )
  await client.call('PUT /v1/files/{file_id}/content', { path, body: new Uint8Array([104, 105]) })
  await client.call('GET /v1/files/{file_id}/content', { path })
  await client.call('HEAD /v1/files/{file_id}/content', { path })
  await client.call('GET /v1/files/children', { query: { folder_id: folder } })
  await client.call('POST /v1/files/children', { json: { folder_id: folder } })
  await client.call('GET /v1/files/search', { query: { q: 'renamed' } })
  await client.call('POST /v1/files/search', { json: { q: 'renamed' } })
  await client.call('DELETE /v1/files/{file_id}', { path: { id: copy } })
  await client.call('GET /v1/files/trash')
  await client.call('POST /v1/files/{file_id}/restore', { path: { id: copy } })
  await client.call('GET /v1/folders/{folder_id}', { path: { id: folder } })
  await client.call('PATCH /v1/folders/{folder_id}', {
    path: { id: folder },
    json: { name: 'old papers' },
  })
  await client.call('POST /v1/folders/{folder_id}/move', {
    path: { id: folder },
    json: { folder_id: null },
  })
  await client.call('DELETE /v1/folders/{folder_id}', {
    path: { id: folder },
    query: { recursive: 'true' },
  })
  await client.call('POST /v1/folders/{folder_id}/restore', { path: { id: folder } })
  await client.call('GET /v1/files/{file_id}', { path: { id: notThere }, status: 404 })
})

test('sharing', async () => {
  const path = { id: await upload('shared.txt', 'Shared.') }
  const json = { principal: { type: 'group', id: 'users' }, role: 'viewer' }
  const share = idOf(await client.call('POST /v1/files/{file_id}/shares', { path, json }))
  const one = { ...path, share_id: share }
  await client.call('GET /v1/files/{file_id}/shares', { path })
  await client.call('PATCH /v1/files/{file_id}/shares/{share_id}', {
    path: one,
    json: { role: 'editor' },
  })
  await client.call('GET /v1/files/{file_id}/access', { path })
  await client.call('DELETE /v1/files/{file_id}/shares/{share_id}', { path: one })
  await client.call('GET /v1/principals', { query: { q: 'us' } })
})

test('collections', async () => {
  const file = await upload('harbour.txt', 'The harbour opens at six in the morning.')
  const path = {
    id: idOf(await client.call('POST /v1/collections', { json: { name: 'harbour' } })),
  }
  await client.call('GET /v1/collections')
  await client.call('GET /v1/collections/{name}', { path })
  await client.call('PATCH /v1/collections/{name}', { path, json: { description: 'Ships.' } })
  await client.call('POST /v1/collections/{name}/files', { path, json: { file_id: file } })
  const member = { ...path, file_id: file }
  await eventually('the file is indexed', async () => {
    const { status } = await client.call('GET /v1/collections/{name}/files/{file_id}', {
      path: member,
    })
    return status === 'completed'
  })
  await client.call('GET /v1/collections/{name}/files', { path })
  await client.call('POST /v1/collections/{name}/search', { path, json: { query: 'harbour' } })
  await client.call('POST /v1/collections/{name}/search', {
    path,
    json: { query: 'harbour', filters: [{ field: 'kind', operator: '==', value: ['a'] }] },
    status: 422,
  })
  await client.call('GET /v1/collections/{name}/access', { path })
  const ofFile = { id: file, collection_id: path.id }
  await client.call('GET /v1/files/{file_id}/collections', { path: { id: file } })
  await client.call('DELETE /v1/files/{file_id}/collections/{collection_id}', { path: ofFile })
  await client.call('POST /v1/collections/{name}/files', { path, json: { file_id: file } })
  await client.call('DELETE /v1/collections/{name}/files/{file_id}', { path: member })
  await client.call('DELETE /v1/collections/{name}', { path })
})

async function upload(name: string, text: string): Promise<string> {
  const body = new FormData()
  body.append('file', new File([text], name, { type: 'text/plain' }))
  return idOf(await client.call('POST /v1/files', { body }))
}
