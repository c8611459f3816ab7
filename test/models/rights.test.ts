import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  ask,
  first,
  gateway,
  makeKey,
  openAgent,
  openKey,
  other,
  secretAgent,
  send,
  staff,
  startRightsWorld,
  stopRightsWorld,
} from './rights-world.ts'

/** Models that some groups may use do not exist for other callers. */

beforeAll(startRightsWorld)
afterAll(stopRightsWorld)

const requests: Record<string, (model: string) => [string, unknown]> = {
  responses: (model) => ['POST /v1/responses', { model, input: 'Hi', store: false }],
  'stored responses': (model) => ['POST /v1/responses', { model, input: 'Hi' }],
  'background responses': (model) => [
    'POST /v1/responses',
    { model, input: 'Hi', background: true },
  ],
  'streamed responses': (model) => ['POST /v1/responses', { model, input: 'Hi', stream: true }],
  'input tokens': (model) => ['POST /v1/responses/input_tokens', { model, input: 'Hi' }],
  compaction: (model) => ['POST /v1/responses/compact', { model, input: 'Hi' }],
  messages: (model) => [
    'POST /compat/v1/messages',
    { model, max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
  ],
  'counted tokens': (model) => [
    'POST /compat/v1/messages/count_tokens',
    { model, messages: [{ role: 'user', content: 'Hi' }] },
  ],
  embeddings: (model) => ['POST /v1/embeddings', { model, input: 'Hi' }],
  reranking: (model) => ['POST /v1/rerank', { model, query: 'Hi', documents: ['a'] }],
  'a model of the list': (model) => [`GET /v1/models/${model}`, undefined],
  'a model of the Messages list': (model) => [`GET /compat/v1/models/${model}`, undefined],
  'an agent': (model) => ['POST /v1/agents', { name: 'A', model }],
  'the service desk': (model) => ['PATCH /v1/config', { service_desk: { model } }],
  'the setting embedding_model': (model) => ['PATCH /v1/config', { embedding_model: model }],
  'the setting reranker_model': (model) => ['PATCH /v1/config', { reranker_model: model }],
  'a collection': (model) => ['POST /v1/collections', { name: 'c', embedding_model: model }],
  'a reindex': (model) => ['POST /v1/embeddings/reindex', { embedding_model: model }],
}

/** An absent name of the same length, so that bodies and errors can be compared. */
const absentOf = (name: string) => `${name.slice(0, -1)}_`
const withoutIds = (text: string) => text.replaceAll(/req_\w+/g, 'req')

describe.each(Object.entries(requests))('for callers without a right, %s', (_, requestOf) => {
  test.each(['secret', 'hidden', 'vendor-model-secret', 'listed-secret', 'embedder', 'sorter'])(
    'of %s fail like those of an unknown model',
    async (name) => {
      const bearer = await gateway.token(['users', 'admins'], 'adam')
      const shown = (text: string, model: string) => withoutIds(text).replaceAll(model, 'M')
      for (const credential of [bearer, openKey]) {
        const hidden = await send(credential, ...requestOf(name))
        const absent = await send(credential, ...requestOf(absentOf(name)))
        expect(hidden.status).toBe(absent.status)
        expect(shown(hidden.text, name)).toBe(shown(absent.text, absentOf(name)))
        expect([404, 422, 403]).toContain(hidden.status)
      }
    },
  )
})

describe('a model for groups', () => {
  test('is called by their members, by any of its names', async () => {
    for (const name of ['secret', 'hidden', 'vendor-model-secret', 'listed-secret']) {
      expect((await ask(staff, name)).status).toBe(200)
    }
    const director = await gateway.token(['users', 'directors'], 'dora')
    expect((await ask(director, 'secret')).status).toBe(200)
    expect((await ask(director, 'listed-secret')).status).toBe(404)
  })

  test('is listed for their members alone', async () => {
    for (const path of ['/v1/models', '/compat/v1/models', '/v1/models?client_version=1']) {
      const shown = (await send(staff, `GET ${path}`)).text
      for (const name of ['secret', 'listed-secret', secretAgent]) expect(shown).toContain(name)
      const limited = (await send(other, `GET ${path}`)).text
      for (const name of ['secret', 'hidden', 'embedder', 'whisper-1', secretAgent]) {
        expect(limited).not.toContain(name)
      }
      for (const name of ['open', openAgent]) expect(limited).toContain(name)
    }
  })

  test('may be used by the groups of every rule that names it', async () => {
    const guest = await gateway.token(['users', 'guests'], 'gil')
    const before = first.requests.length
    for (const bearer of [guest, staff]) {
      for (let round = 0; round < 8; round++) {
        expect((await ask(bearer, 'listed-shared')).status).toBe(200)
      }
    }
    expect(first.requests.length).toBeGreaterThan(before)
  })

  test('of one upstream of two is called at the other by everyone else', async () => {
    const before = first.requests.length
    for (let round = 0; round < 8; round++) {
      expect((await ask(other, 'listed-shared')).status).toBe(200)
    }
    expect(first.requests.length).toBe(before)
  })

  test('of the configuration is not subject to the rules for listed models', async () => {
    const guest = await gateway.token(['users', 'guests'], 'gil')
    expect((await ask(guest, 'secret')).status).toBe(404)
  })

  test('hides a speech model of its name', async () => {
    expect((await send(other, 'GET /v1/models/whisper-1')).status).toBe(404)
    expect((await send(staff, 'GET /v1/models/whisper-1')).status).toBe(200)
  })
})

describe('an agent', () => {
  test('on a hidden model is unknown: its owner does not widen the rights of its callers', async () => {
    expect((await ask(staff, secretAgent)).status).toBe(200)
    expect((await ask(other, openAgent)).status).toBe(200)
    const refused = await ask(other, secretAgent)
    const unknown = `vendor-agent-${Bun.randomUUIDv7()}`
    const absent = await ask(other, unknown)
    expect(refused.status).toBe(404)
    expect(refused.text.replace(secretAgent, '')).toBe(absent.text.replace(unknown, ''))
    const { body } = await send(other, `GET /v1/agents/${secretAgent.slice(-36)}`)
    expect(body).toMatchObject({ status: 'model_unavailable', model: null })
    const own = await send(staff, `GET /v1/agents/${secretAgent.slice(-36)}`)
    expect(own.body).toMatchObject({ status: 'ready', model: 'secret' })
  })
})

describe('a collection with a hidden embedding model', () => {
  test('is searched without vectors: its owner does not widen the rights of its readers', async () => {
    const collection = { name: 'plans', embedding_model: 'embedder' }
    const { id } = (await send(staff, 'POST /v1/collections', collection)).body
    const me = await send(other, 'GET /v1/me')
    const share = { principal: { type: 'user', id: me.body['id'] }, role: 'viewer' }
    const shared = await send(staff, `POST /v1/collections/${id}/shares`, share)
    expect(shared.status).toBe(201)
    const search = async (bearer: string) => {
      const { body } = await send(bearer, `POST /v1/collections/${id}/search`, { query: 'a plan' })
      return body['retrieval']
    }
    expect(await search(staff)).toMatchObject({ degraded: [] })
    expect(await search(other)).toMatchObject({ degraded: ['vector'] })
    // The list of a key restricts the models that a request names.
    const key = await makeKey({ models: ['open'] })
    expect(await search(key)).toMatchObject({ degraded: [] })
  })
})
