import { describe, expect, test } from 'bun:test'
import { useDescribedGateway } from '#test/support/described-gateway.ts'

const fixture = useDescribedGateway()
const unknownFile = '/v1/files/00000000-0000-7000-8000-000000000000'

async function made(how: string, json?: object): Promise<string> {
  const { body, status } = await fixture.ask(how, json === undefined ? { body: 'text' } : { json })
  expect(status).toBe(201)
  return String(body['id'])
}

const upload = (name: string) => made(`POST /v1/files?name=${name}&attributes={"a":1}`)
const folder = (name: string) => made('POST /v1/folders', { name })

describe('documented file responses', () => {
  test('create, update and delete', async () => {
    const { ask } = fixture
    const id = await upload('plan.txt')
    const path = `/v1/files/${id}`
    const inside = { folder_id: await folder('plans') }
    const { headers } = await ask(`GET ${path}`)
    const json = { name: 'plans.txt', attributes: { b: 'x', a: null } }
    await ask(`PATCH ${path}`, { json, headers: { 'if-match': headers.get('etag') ?? '' } })
    await ask(`POST ${path}/move`, { json: inside })
    expect((await ask(`POST ${path}/copy`, { json: {} })).status).toBe(201)
    expect((await ask(`PUT ${path}/content`, { body: 'new' })).status).toBe(200)
    expect((await ask(`GET ${path}/content`)).text).toBe('new')
    const requests = [{ range: 'bytes=1-' }, { range: 'bytes=9-' }, { 'if-none-match': '*' }]
    const statuses = []
    for (const how of requests) {
      statuses.push((await ask(`GET ${path}/content`, { headers: how })).status)
    }
    expect(statuses).toEqual([206, 416, 304])
    expect((await ask(`HEAD ${path}/content`)).status).toBe(200)
    await ask(`DELETE ${path}`)
    expect((await ask('GET /v1/files/trash')).body['data']).toHaveLength(1)
    expect((await ask(`POST ${path}/restore`)).status).toBe(200)
    expect((await ask(`DELETE ${path}?permanent=true`)).status).toBe(200)
  })

  test('list and search', async () => {
    const { ask } = fixture
    const collection = { name: 'shelf', description: 'for files' }
    expect((await ask('POST /v1/collections', { json: collection })).status).toBe(201)
    await made('POST /v1/files?name=found.txt&collections=["shelf"]')
    const folderId = await folder('found things')
    const { body } = await ask('GET /v1/files?limit=1')
    await ask(`GET /v1/files?after=${body['last_id']}&scope=mine`)
    const top = await ask('GET /v1/files/children?limit=1&sort=updated_at')
    expect(top.body['next']).toBeString()
    await ask('POST /v1/files/children', { json: { folder_id: folderId } })
    const found = await ask('GET /v1/files/search?q=found')
    expect(found.body['data']).toHaveLength(2)
    await ask('POST /v1/files/search', { json: { query: 'found', mime_type: 'text/*' } })
  })

  test('errors', async () => {
    const { ask } = fixture
    const path = `/v1/files/${await upload('kept.txt')}`
    await upload('taken.txt')
    const stale = { headers: { 'if-match': '"99"' } }
    const responses = [
      await ask(`GET ${unknownFile}`),
      await ask(`GET ${path}`, { as: 'bob' }),
      await ask(`PATCH ${path}`, { json: { name: 'taken.txt' } }),
      await ask(`PATCH ${path}`, { json: { name: 'a/b' } }),
      await ask(`PATCH ${path}`, { json: { folder_path: '/a' } }),
      await ask(`PATCH ${path}`, { json: {}, ...stale }),
      await ask(`PUT ${path}/content`, { body: 'x', ...stale }),
      await ask(`GET ${path}/content`, stale),
      await ask(`POST ${path}/move`, { json: {} }),
      await ask(`DELETE ${path}?permanent=maybe`),
      await ask(`DELETE ${path}`, stale),
      await ask('POST /v1/files?name=taken.txt', { body: 'x' }),
      await ask('POST /v1/files?name=x&collections=["none"]', { body: 'x' }),
      await ask('POST /v1/files?name=x&colour=red', { body: 'x' }),
      await ask('GET /v1/files/children?cursor=x'),
      await ask('GET /v1/files/children?limit=101'),
      await ask('GET /v1/files/search'),
    ]
    expect(responses.map(({ status }) => status)).toEqual([
      ...[404, 404, 409, 422, 422, 412, 412, 412, 422, 422, 412],
      ...[409, 422, 422, 422, 422, 422],
    ])
  })
})

test('documented folder responses', async () => {
  const { ask } = fixture
  const outer = await folder('outer')
  const inner = await made('POST /v1/folders', { name: 'inner', folder_id: outer })
  expect((await ask(`GET /v1/folders/${inner}`)).body['path']).toEqual([
    { id: outer, name: 'outer' },
  ])
  await ask(`PATCH /v1/folders/${inner}`, { json: { name: 'within' } })
  const cycle = await ask(`POST /v1/folders/${outer}/move`, { json: { folder_id: inner } })
  expect(cycle.status).toBe(409)
  expect((await ask(`DELETE /v1/folders/${outer}`)).status).toBe(409)
  await ask(`DELETE /v1/folders/${outer}?recursive=true`)
  expect((await ask(`POST /v1/folders/${outer}/restore`)).status).toBe(200)
  await ask(`POST /v1/folders/${inner}/move`, { json: { folder_id: null } })
})

test.each(['files', 'folders', 'collections'])('documented share responses of %s', async (of) => {
  const { ask } = fixture
  const name = `shared-${of}`
  const id = await {
    files: () => upload(name),
    folders: () => folder(name),
    collections: () => made('POST /v1/collections', { name, description: 'x' }),
  }[of]?.()
  const path = `/v1/${of}/${id}`
  const grant = { principal: { type: 'user', subject: 'bob' }, role: 'viewer' }
  const { body, status } = await ask(`POST ${path}/shares`, { json: grant })
  expect(status).toBe(201)
  expect((await ask(`POST ${path}/shares`, { json: grant })).status).toBe(200)
  const share = `${path}/shares/${body['id']}`
  await ask(`PATCH ${share}`, { json: { role: 'editor' } })
  expect((await ask(`GET ${path}/shares`, { as: 'bob' })).body['data']).toHaveLength(1)
  expect((await ask(`GET ${path}/access`)).body['role']).toBe('owner')
  expect((await ask(`GET ${path}/access`, { as: 'bob' })).body['role']).toBe('editor')
  const refused = [
    await ask(`PATCH ${share}`, { as: 'bob', json: { role: 'manager' } }),
    await ask(`PATCH ${share}`, { json: { role: 'owner' } }),
    await ask(`POST ${path}/shares`, { json: { ...grant, principal: { type: 'user' } } }),
    await ask(`GET ${path}/shares`, { as: 'cy' }),
    await ask(`GET ${path}/access?user_id=x`),
  ]
  expect(refused.map((response) => response.status)).toEqual([403, 422, 422, 404, 422])
  await ask(`DELETE ${share}`, { as: 'bob' })
  expect((await ask(`DELETE ${share}`)).status).toBe(404)
})

test('documented responses of the people picker', async () => {
  const { ask } = fixture
  await ask('GET /v1/files', { as: 'bob' })
  expect((await ask('GET /v1/principals?q=bob')).body['data']).toHaveLength(1)
  expect((await ask('GET /v1/principals')).status).toBe(422)
})
