import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'

/** What a client can add to a request to an upstream, and what an upstream can add to a response. */

const upstreamKey = 'sk-upstream-0123456789'
const apis = ['chat', 'responses', 'messages'] as const
let gateway: Gateway
let upstream: ReplayUpstream
/** Where a request of a client tries to lead the gateway. */
let elsewhere: ReplayUpstream

beforeAll(async () => {
  upstream = await startReplayUpstream(({ path, body }) => ({
    status: path.endsWith('/chat/completions') ? 200 : 418,
    headers: {
      'content-type': path.endsWith('/chat/completions') ? 'text/event-stream' : 'text/plain',
      'set-cookie': 'upstream=1',
      server: 'upstream/9',
      'x-powered-by': 'upstream',
      'x-internal-address': '10.0.0.9',
      connection: 'x-internal-address',
      'access-control-allow-origin': '*',
    },
    body: path.endsWith('/chat/completions') ? chatAnswer(body) : 'no',
  }))
  elsewhere = await startReplayUpstream({ body: 'reached' })
  gateway = await startGateway({
    upstream: apis.map((api) => ({
      name: api,
      api,
      url: upstream.baseUrl,
      key: upstreamKey,
      headers: { 'x-tenant': 'ours' },
    })),
    model: apis.map((api) => ({ name: api, upstreams: [api] })),
    retry: { retriesMax: 0 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
  await elsewhere.stop()
})

const turn = { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }
const requests: readonly [path: string, body: object][] = [
  ['/v1/responses', { input: 'Hi', store: false }],
  ['/v1/responses/input_tokens', { input: 'Hi' }],
  ['/compat/v1/messages', turn],
  ['/compat/v1/messages/count_tokens', turn],
]
const rows = requests.flatMap(([path, body]) => apis.map((api) => [path, api, body] as const))

/** What a proxy or a browser adds, and what a client may hope to be passed on. */
const smuggled = {
  cookie: 'session=of-the-client',
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-host': 'evil.example',
  'x-real-ip': '203.0.113.9',
  forwarded: 'for=203.0.113.9',
  'proxy-authorization': 'Basic Y2xpZW50',
  'x-tenant': 'theirs',
  'x-litellm-key': 'client',
  'openai-organization': 'org-client',
  'openai-project': 'proj-client',
  'x-request-id': 'client-request',
  referer: 'https://client.example/',
  origin: 'https://client.example',
}

/** Everything that an upstream may receive. */
const allowed = [
  'accept',
  'accept-encoding',
  'anthropic-beta',
  'anthropic-version',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'host',
  'traceparent',
  'tracestate',
  'user-agent',
  'x-api-key',
  // Of the gateway, so that the logs of both can be matched.
  'x-request-id',
  'x-tenant',
]

async function send(path: string, body: object, headers: Record<string, string> = {}) {
  const from = upstream.requests.length
  const response = await gateway.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return { response, text, sent: upstream.requests.slice(from) }
}

describe('a request to an upstream', () => {
  test.each(rows)(
    'for %s over %s has none of the headers of the client',
    async (path, api, body) => {
      const { sent, text } = await send(path, { ...body, model: api }, smuggled)
      const client = await gateway.token()
      for (const { headers } of sent) {
        expect(Object.keys(headers).filter((name) => !allowed.includes(name))).toEqual([])
        expect(headers['x-tenant']).toBe('ours')
        const values = Object.values(headers).join('\n')
        expect(values).not.toContain(client.split('.')[2] ?? '')
        expect(values).not.toMatch(/client|203\.0\.113|evil/)
        expect(`${headers['authorization']}${headers['x-api-key']}`).toContain(upstreamKey)
      }
      if (!path.includes('token')) expect(sent, text).not.toBeEmpty()
    },
  )

  test.each(rows)('for %s over %s goes where the operator says', async (path, api, body) => {
    const away = elsewhere.baseUrl
    const { sent } = await send(path, {
      ...body,
      model: api,
      api_base: away,
      base_url: away,
      baseURL: away,
      api_key: 'client',
      api_version: 'client',
      organization: 'client',
      extra_headers: { 'x-tenant': 'theirs' },
      headers: { 'x-tenant': 'theirs' },
      custom_llm_provider: 'openai',
      vertex_credentials: 'client',
      aws_region_name: 'client',
      proxy: away,
    })
    for (const { headers } of sent) {
      expect(headers['x-tenant']).toBe('ours')
      expect(`${headers['authorization']}${headers['x-api-key']}`).toContain(upstreamKey)
    }
    expect(elsewhere.requests).toBeEmpty()
  })
})

describe('a response', () => {
  const foreign = [
    'set-cookie',
    'x-powered-by',
    'x-internal-address',
    'access-control-allow-origin',
  ]

  test.each(rows)('for %s over %s has no header of the upstream', async (path, api, body) => {
    const { response, text } = await send(path, { ...body, model: api })
    for (const name of foreign) expect(response.headers.get(name), name).toBeNull()
    expect(response.headers.get('server')).not.toBe('upstream/9')
    expect([...response.headers].flat().join('\n') + text).not.toContain(upstreamKey)
  })
})
