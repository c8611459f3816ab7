import { expect, test } from 'bun:test'
import { useDescribedGateway } from '#test/support/described-gateway.ts'

const gateway = useDescribedGateway({ environment: { SLUICE_FILE_TRASH_S: '60' } })

test('responses match their documentation', async () => {
  const { ask } = gateway
  const { headers } = await ask('GET /v1/config', { as: 'ann' })
  const change = { retrieval_k: 7, rerank_top_n: null, service_desk: { document_ids: [] } }
  const tried = await ask('PATCH /v1/config?dry_run=true', { json: { embedding_model: null } })
  const changed = await ask('PATCH /v1/config', { json: change })
  expect([tried.status, changed.status]).toEqual([200, 200])
  const stale = { 'if-match': headers.get('etag') ?? '' }
  expect((await ask('PATCH /v1/config', { json: change, headers: stale })).status).toBe(412)
  await ask('PATCH /v1/config', { json: { responses: { ttl_seconds: 600 } } })
  const history = await ask('GET /v1/config/history?limit=1')
  expect(history.body['has_more']).toBe(true)
  await ask(`GET /v1/config/history?after=${history.body['last_id']}`)
  const back = await ask('POST /v1/config/rollback', { json: { revision: 0 } })
  expect(back.body).toMatchObject({ retrieval_k: 3 })
  await ask('GET /v1/config/schema', { as: 'ann' })
})

test('error responses match their documentation', async () => {
  const { ask } = gateway
  const refused = [
    { retrieval_k: 51 },
    { retrieval_k: 'x' },
    { rerank_top_n: 3 },
    { embedding_model: 'nowhere' },
    { service_desk: { document_ids: ['x'] } },
    { service_desk: { collection_name: 'x' } },
    { files: { trash_seconds: 1 } },
    { colour: 1 },
  ]
  const statuses = []
  for (const json of refused) statuses.push((await ask('PATCH /v1/config', { json })).status)
  expect(statuses).toEqual([422, 422, 422, 422, 422, 422, 409, 422])
  await ask('POST /v1/config/rollback', { json: {} })
  await ask('POST /v1/config/rollback', { json: { revision: 77 } })
  await ask('GET /v1/config/history?limit=0')
})
