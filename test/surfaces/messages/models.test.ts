import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { systemPrincipal } from '#lib/request-context.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'

/** `GET /compat/v1/models`: the models that clients of the Messages protocol see. */

let gateway: Gateway
let agentId: string

const listed = {
  data: [
    { id: 'org/old', created: 1_600_000_000, max_model_len: 8_192 },
    { id: 'org/new', created: 1_700_000_000, max_model_len: 1_000_000 },
    { id: 'undated' },
  ],
}

beforeAll(async () => {
  const upstream = await upstreamThat({ headers: json, body: JSON.stringify(listed) })
  gateway = await startGateway({
    upstream: [{ name: 'local', url: upstream.baseUrl }],
    model: [
      {
        name: 'thinker',
        upstreams: ['local'],
        aliases: ['smart'],
        capabilities: ['tools', 'vision', 'reasoning'],
        contextWindow: 200_000,
      },
      { name: 'embedder', mode: 'embed', upstreams: ['local'] },
    ],
  })
  await eventually(
    'the upstream was asked',
    () => gateway.deps.catalogue.list(systemPrincipal).length === 5,
  )
  const created = await gateway.post('/v1/agents', { name: 'Librarian', model: 'org/new' })
  agentId = Object(await created.json()).id
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

type Entry = { id: string; display_name: string; created_at: string }
type Page = { data: Entry[]; has_more: boolean; first_id: string | null; last_id: string | null }

async function read(query = '', at = gateway): Promise<Page> {
  const answer = await at.request(`/compat/v1/models${query}`)
  expect(answer.status).toBe(200)
  const page: Page = Object(await answer.json())
  return page
}

const order = () => [
  `vendor-agent-${agentId}`,
  `vendor-agent-${agentId}[1m]`,
  'vendor-model-org/new',
  'vendor-model-org/new[1m]',
  'vendor-model-org/old',
  'vendor-model-thinker',
  'vendor-model-undated',
]

describe('the list', () => {
  test('contains models that generate text and agents, newest first', async () => {
    const page = await read()
    expect(page.data.map(({ id }) => id)).toEqual(order())
    expect(page).toMatchObject({
      has_more: false,
      first_id: order()[0],
      last_id: order().at(-1),
    })
  })

  test('states the kind, context window and date of each model', async () => {
    const { data } = await read()
    const shown = data.map((entry) => [
      entry.display_name,
      Object(entry).max_input_tokens,
      entry.created_at,
    ])
    expect(shown).toEqual([
      ['Librarian', 1_000_000, expect.any(String)],
      ['Librarian (1M context)', 1_000_000, expect.any(String)],
      ['org/new', 1_000_000, '2023-11-14T22:13:20.000Z'],
      ['org/new (1M context)', 1_000_000, '2023-11-14T22:13:20.000Z'],
      ['org/old', 8_192, '2020-09-13T12:26:40.000Z'],
      ['thinker', 200_000, '1970-01-01T00:00:00.000Z'],
      ['undated', null, '1970-01-01T00:00:00.000Z'],
    ])
  })

  test('states known capabilities', async () => {
    const { data } = await read()
    const yes = { supported: true }
    const no = { supported: false }
    expect<unknown>(data.at(-2)).toEqual({
      type: 'model',
      id: 'vendor-model-thinker',
      display_name: 'thinker',
      created_at: '1970-01-01T00:00:00.000Z',
      max_input_tokens: 200_000,
      max_tokens: null,
      lifecycle: 'active',
      deprecated_at: null,
      retires_at: null,
      line: null,
      capabilities: {
        batch: no,
        citations: no,
        code_execution: no,
        context_management: no,
        effort: { supported: true, low: yes, medium: yes, high: yes, xhigh: null, max: no },
        image_input: yes,
        pdf_input: no,
        server_tools: { supported: false, code_execution: no, web_search: no },
        structured_outputs: yes,
        thinking: {
          supported: true,
          types: { adaptive: yes, between_tools: no, disabled: yes, enabled: yes },
        },
      },
    })
    expect(Object(data.at(-1)).capabilities).toBeNull()
  })

  test.each(['/compat/models', '/compat/v1/v1/models', '/compat/v1/models/'])(
    'is served at %s as well',
    async (path) => {
      const httpResponse = await gateway.request(path)
      expect(await httpResponse.json()).toEqual(Object(await read()))
    },
  )

  test('uses the configured prefix', async () => {
    const other = await startGateway({ compat: { prefix: 'acme' } })
    const { data } = await read('?limit=1000', other)
    expect(data.length).toBeGreaterThan(0)
    for (const { id } of data) expect(id).toStartWith('acme-model-demo')
    await other.stop()
  })

  test('does not wait for an upstream', async () => {
    const silent = await upstreamThat({ ending: 'silent' })
    const other = await startGateway({ upstream: [{ url: silent.baseUrl }] })
    expect(await read('', other)).toEqual({
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    })
    await other.stop()
  })
})

describe('a page', () => {
  test('follows the previous one, to the end', async () => {
    const seen: string[] = []
    for (let query = '?limit=3'; query !== ''; ) {
      const page = await read(query)
      seen.push(...page.data.map(({ id }) => id))
      query = page.has_more ? `?limit=3&after_id=${encodeURIComponent(page.last_id ?? '')}` : ''
    }
    expect(seen).toEqual(order())
  })

  test('precedes the next one, to the beginning', async () => {
    const seen: string[] = []
    const last = encodeURIComponent(order().at(-1) ?? '')
    for (let query = `?limit=4&before_id=${last}`; query !== ''; ) {
      const page = await read(query)
      seen.unshift(...page.data.map(({ id }) => id))
      const first = encodeURIComponent(page.first_id ?? '')
      query = page.has_more ? `?limit=4&before_id=${first}` : ''
    }
    expect(seen).toEqual(order().slice(0, -1))
  })

  test('after the last or before the first model is empty', async () => {
    const empty = { data: [], has_more: false, first_id: null, last_id: null }
    expect(await read(`?after_id=${order().at(-1)}`)).toEqual(empty)
    expect(await read(`?before_id=${order()[0]}`)).toEqual(empty)
  })

  test.each([
    'limit=0',
    'limit=1001',
    'limit=-1',
    'limit=x',
    'limit=',
    'limit=1.5',
    'after_id=nope',
    'before_id=vendor-model-nope',
    'after_id=thinker',
    'after_id=vendor-model-thinker&before_id=vendor-model-undated',
  ])('by %s is refused', async (query) => {
    const httpResponse = await gateway.request(`/compat/v1/models?${query}`)
    expect(httpResponse.status).toBe(400)
    expect(await httpResponse.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
  })

  test('can have a thousand models, and ignores unknown parameters', async () => {
    expect((await read('?limit=1000&lifecycle[]=active&beta=true')).data.length).toBe(7)
  })
})

describe('one model', () => {
  test.each([
    ['vendor-model-thinker', 'vendor-model-thinker'],
    ['thinker', 'vendor-model-thinker'],
    ['smart', 'vendor-model-thinker'],
    ['vendor-model-smart', 'vendor-model-thinker'],
    ['thinker[1m]', 'vendor-model-thinker'],
    ['org/new', 'vendor-model-org/new'],
    ['org%2Fnew', 'vendor-model-org/new'],
    ['vendor-model-org%2Fnew', 'vendor-model-org/new'],
    ['vendor-model-org%2Fnew%5B1m%5D', 'vendor-model-org/new[1m]'],
    ['org/new[1m]', 'vendor-model-org/new[1m]'],
    ['vendor-agent-AGENT', 'vendor-agent-AGENT'],
    ['AGENT', 'vendor-agent-AGENT'],
    ['vendor-agent-AGENT%5B1m%5D', 'vendor-agent-AGENT[1m]'],
  ])('is found as %s', async (name, id) => {
    for (const base of ['/compat/v1/models', '/compat/models']) {
      const httpResponse = await gateway.request(`${base}/${name.replace('AGENT', agentId)}`)
      expect(httpResponse.status).toBe(200)
      expect(await httpResponse.json()).toMatchObject({
        type: 'model',
        id: id.replace('AGENT', agentId),
      })
    }
  })

  test.each([
    'nope',
    'vendor-model-',
    'vendor-agent-thinker',
    'embedder',
    'acme-model-thinker',
    'org',
  ])('is not found as %s', async (name) => {
    const httpResponse = await gateway.request(`/compat/v1/models/${name}`)
    expect(httpResponse.status).toBe(404)
    expect(await httpResponse.json()).toMatchObject({ error: { type: 'not_found_error' } })
  })
})
