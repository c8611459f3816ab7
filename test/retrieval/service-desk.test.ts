import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { serviceDeskAgentId } from '#retrieval/service-desk.ts'
import { eventually } from '#test/support/eventually.ts'
import { ann, bob, clientOf, type Person } from '#test/support/fill-collection.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** `service_desk.document_ids` from outside: set the ids, ask the built-in agent, get the passage. */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())
beforeEach(async () => {
  expect((await configure(dora, { document_ids: null, model: null })).status).toBe(200)
})

const dora: Person = { subject: 'dora', groups: ['admins'] }
const max: Person = { subject: 'max', groups: ['admins'] }
const agentModel = `vendor-agent-${serviceDeskAgentId}`
const question = 'How do I reset my badge?'
const passage = 'Badges are reset at the front desk.'

async function send(who: Person, how: string, json?: object) {
  const [method = '', path = ''] = how.split(' ')
  const response = await gateway.request(path, {
    method,
    headers: {
      authorization: `Bearer ${await gateway.token(who.groups, who.subject)}`,
      'content-type': 'application/json',
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  const { status, headers } = response
  return { status, etag: headers.get('etag') ?? '', body: asRecord(await response.json()) }
}

const configure = (who: Person, desk: object) =>
  send(who, 'PATCH /v1/config', { service_desk: desk })

async function upload(who: Person, name: string, text: string): Promise<string> {
  const { files } = await clientOf(gateway, who)
  const file = new File([text], name, { type: 'text/plain' })
  return (await files.create({ file, purpose: 'assistants' })).id
}

async function share(who: Person, id: string, subject: string, role: string): Promise<string> {
  const json = { principal: { type: 'user', subject }, role }
  const { status, body } = await send(who, `POST /v1/files/${id}/shares`, json)
  expect(status).toBe(201)
  return String(body['id'])
}

/** Names of the files that the agent finds and cites for a caller, each once. */
async function foundFor(who: Person, fields: object = { model: agentModel }): Promise<string[]> {
  const client = await clientOf(gateway, who)
  const response = await client.responses.create({
    model: 'demo',
    input: question,
    include: ['file_search_call.results'],
    ...fields,
  })
  const named = JSON.stringify(response.output).matchAll(/"filename":"([^"]+)"/g)
  return [...new Set([...named].map(([, name]) => name ?? ''))]
}

const finds = (name: string, who = bob) =>
  eventually(`the service desk finds ${name}`, async () => (await foundFor(who)).includes(name))

test('every caller asks the documents, on both surfaces and by file search', async () => {
  const id = await upload(dora, 'badges.txt', passage)
  expect((await configure(dora, { document_ids: [id] })).body['service_desk']).toEqual({
    document_ids: [id],
    model: null,
  })
  await finds('badges.txt')
  const client = await clientOf(gateway, bob)
  const response = await client.responses.create({ model: agentModel, input: question })
  expect(response.output_text).toContain(passage)
  expect(await foundFor(bob, serviceDeskSearch)).toContain('badges.txt')
  const message = await send(bob, 'POST /compat/v1/messages', {
    model: agentModel,
    max_tokens: 200,
    messages: [{ role: 'user', content: question }],
  })
  expect(JSON.stringify(message.body['content'])).toContain(passage)
  for (const path of ['/v1/models', '/compat/v1/models', '/v1/agents']) {
    const { body } = await send(bob, `GET ${path}`)
    expect(JSON.stringify(body)).toContain(serviceDeskAgentId)
  }
  // The passages are open, the file is not.
  expect((await send(bob, `GET /v1/files/${id}`)).status).toBe(404)
})

const serviceDeskSearch = {
  tools: [{ type: 'file_search', vector_store_ids: ['service-desk'] }],
}

test('documents come and go with the setting, and with none there is no agent', async () => {
  const first = await upload(dora, 'first.txt', passage)
  const second = await upload(dora, 'second.txt', passage)
  await configure(dora, { document_ids: [first] })
  await finds('first.txt')
  await configure(dora, { document_ids: [second] })
  await finds('second.txt')
  expect(await foundFor(bob)).not.toContain('first.txt')
  const { etag } = await send(dora, 'GET /v1/config')
  const revision = Number.parseInt(etag.replace('"', ''), 10)
  for (const change of [null, []]) {
    await configure(dora, { document_ids: change })
    for (const who of [bob, dora]) {
      expect((await send(who, `GET /v1/agents/${serviceDeskAgentId}`)).status).toBe(404)
      expect((await send(who, 'GET /v1/collections/service-desk')).status).toBe(404)
    }
  }
  expect((await send(dora, 'POST /v1/config/rollback', { revision })).status).toBe(200)
  await finds('second.txt')
})

describe('the rights of the administrator who set a document', () => {
  test('must include sharing it; nothing changes otherwise', async () => {
    const id = await upload(ann, 'anns.txt', passage)
    await share(ann, id, 'dora', 'viewer')
    const refused = await configure(dora, { document_ids: [id] })
    expect(refused).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
    const { body } = await send(dora, 'GET /v1/config')
    expect(body['service_desk']).toEqual({ document_ids: null, model: null })
    expect((await send(bob, `GET /v1/agents/${serviceDeskAgentId}`)).status).toBe(404)
  })

  test('decide at each search, and another administrator cannot lend theirs by accident', async () => {
    const id = await upload(ann, 'lent.txt', passage)
    const own = await upload(max, 'own.txt', passage)
    const lent = await share(ann, id, 'dora', 'manager')
    await configure(dora, { document_ids: [id] })
    await finds('lent.txt')
    // Keeps the document as set by dora.
    await configure(max, { document_ids: [id, own] })
    await finds('own.txt')
    expect(await foundFor(bob)).toContain('lent.txt')
    expect((await send(ann, `DELETE /v1/files/${id}/shares/${lent}`)).status).toBe(200)
    expect(await foundFor(bob)).toEqual(['own.txt'])
    expect(await foundFor(dora)).toEqual(['own.txt'])
  })

  test('do not bind the owner, who sees and ends the membership', async () => {
    const id = await upload(ann, 'mine.txt', passage)
    await share(ann, id, 'dora', 'manager')
    await configure(dora, { document_ids: [id] })
    await finds('mine.txt')
    const { body } = await send(ann, `GET /v1/files/${id}/collections`)
    const [membership] = Object(body['data'])
    expect(membership).toMatchObject({
      name: 'service-desk',
      open: true,
      shared_by: { name: 'dora' },
    })
    const ended = await send(ann, `DELETE /v1/files/${id}/collections/${membership.id}`)
    expect(ended.status).toBe(200)
    expect(await foundFor(bob)).toEqual([])
  })
})

describe('the agent', () => {
  test('uses the first model, or the one of the setting', async () => {
    const id = await upload(dora, 'model.txt', passage)
    await configure(dora, { document_ids: [id] })
    const model = async () =>
      (await send(bob, `GET /v1/agents/${serviceDeskAgentId}`)).body['model']
    expect(await model()).toBe('demo')
    await configure(dora, { model: 'demo-fast' })
    expect(await model()).toBe('demo-fast')
    const refused = await configure(dora, { model: 'nothing' })
    expect(refused).toMatchObject({
      status: 422,
      body: { error: { code: 'model_not_found', param: 'service_desk.model' } },
    })
  })

  test('cannot be changed or deleted, nor its collection', async () => {
    const id = await upload(dora, 'fixed.txt', passage)
    await configure(dora, { document_ids: [id] })
    const path = `/v1/agents/${serviceDeskAgentId}`
    expect((await send(dora, `GET ${path}`)).body['is_editable']).toBe(false)
    expect((await send(dora, `PATCH ${path}`, { name: 'Mine' })).status).toBe(403)
    expect((await send(dora, `DELETE ${path}`)).status).toBe(403)
    const collection = '/v1/collections/service-desk'
    expect((await send(dora, `PATCH ${collection}`, { description: 'x' })).status).toBe(403)
    expect((await send(dora, `DELETE ${collection}?force=true`)).status).toBe(403)
  })
})
