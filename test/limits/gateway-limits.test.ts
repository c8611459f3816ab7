import { afterEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'

let gateway: Gateway | undefined
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

async function start(options: GatewayOptions): Promise<Gateway> {
  gateway = await startGateway(options)
  return gateway
}

const input = { model: 'demo-fast', input: 'hi', store: false }
const message = {
  model: 'demo-fast',
  max_tokens: 64,
  messages: [{ role: 'user', content: 'hi' }],
}

const headersOf = ({ headers }: Response, prefix: string) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith(prefix)))

test('without limits no response has rate-limit headers', async () => {
  const here = await start({})
  const response = await here.post('/v1/responses', input)
  expect(headersOf(response, 'x-ratelimit')).toEqual({})
  expect(await here.deps.scrapeMetrics('prometheus')).not.toContain('sluice_limit_refusals_total{')
})

test('responses, whole and streamed, have the headers of OpenAI, and 429 their body', async () => {
  const here = await start({
    limits: { default: { requests_per_minute: 2, input_tokens_per_minute: 1_000 } },
  })
  const whole = await here.post('/v1/responses', input)
  expect(headersOf(whole, 'x-ratelimit')).toMatchObject({
    'x-ratelimit-limit-requests': '2',
    'x-ratelimit-remaining-requests': '1',
    'x-ratelimit-reset-requests': '30s',
    'x-ratelimit-limit-tokens': '1000',
    'x-ratelimit-remaining-tokens': expect.stringMatching(/^99\d$/),
    'x-ratelimit-reset-tokens': expect.stringMatching(/^\d+m?s$/),
  })
  const streamed = await here.post('/v1/responses', { ...input, stream: true })
  expect(streamed.headers.get('x-ratelimit-remaining-requests')).toBe('0')
  expect(await streamed.text()).toContain('response.completed')
  const refused = await here.post('/v1/responses', { ...input, stream: true })
  expect(refused.status).toBe(429)
  expect(here.deps.inference.running()).toBe(0)
  expect(await refused.json()).toEqual({
    error: {
      message: expect.stringContaining('The limit of 2 requests per minute of this user'),
      type: 'rate_limit_error',
      param: null,
      code: 'rate_limit_exceeded',
    },
  })
  expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, 31)
  expect(refused.headers.get('x-should-retry')).toBe('true')
  expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0')
  expect(await here.deps.scrapeMetrics('prometheus')).toContain(
    'sluice_limit_refusals_total{scope="user",limit="requests_per_minute"',
  )
})

test('messages have the headers of Anthropic, and 429 their error', async () => {
  const here = await start({
    limits: {
      default: {
        requests_per_minute: 1,
        input_tokens_per_minute: 500,
        output_tokens_per_minute: 900,
      },
    },
  })
  const served = await here.post('/compat/v1/messages', { ...message, stream: true })
  await served.text()
  const names = ['requests', 'tokens', 'input-tokens', 'output-tokens']
  for (const name of names) {
    const header = (field: string) => served.headers.get(`anthropic-ratelimit-${name}-${field}`)
    expect(Number(header('limit'))).toBeGreaterThan(0)
    expect(Number(header('remaining'))).toBeLessThan(Number(header('limit')))
    expect(header('reset')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  }
  const refused = await here.post('/compat/v1/messages', message)
  expect(refused.status).toBe(429)
  expect(await refused.json()).toMatchObject({
    type: 'error',
    error: { type: 'rate_limit_error', details: { error_code: 'rate_limit_exceeded' } },
  })
  expect(refused.headers.get('anthropic-ratelimit-requests-remaining')).toBe('0')
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(headersOf(refused, 'x-ratelimit')).toEqual({})
})

test('stored responses are refused with the status and headers, too', async () => {
  const here = await start({ limits: { default: { requests_per_minute: 2 } } })
  const stored = { ...input, store: true }
  expect((await here.post('/v1/responses', stored)).status).toBe(200)
  const streamed = await here.post('/v1/responses', { ...stored, stream: true })
  expect(streamed.headers.get('x-ratelimit-remaining-requests')).toBe('0')
  await streamed.text()
  for (const stream of [true, false]) {
    const refused = await here.post('/v1/responses', { ...stored, stream })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('x-ratelimit-limit-requests')).toBe('2')
    expect(Object(await refused.json()).error.code).toBe('rate_limit_exceeded')
  }
})

test('a background response waits for its limit', async () => {
  const here = await start({ limits: { default: { requests_per_minute: 20 } } })
  const used = Array.from({ length: 20 }, () => here.post('/v1/responses', input))
  for (const response of used) expect((await response).status).toBe(200)
  const queued = await here.post('/v1/responses', { ...input, store: true, background: true })
  const { id } = Object(await queued.json())
  await eventually('it has ended', async () => {
    const { status } = Object(await (await here.request(`/v1/responses/${id}`)).json())
    expect(status).not.toBe('failed')
    return status === 'completed'
  })
})

test('an alias and a prefixed name count for their model', async () => {
  const here = await start({ limits: { model: { 'demo-fast': { requests_per_minute: 2 } } } })
  const ask = async (model: string) =>
    (await here.post('/compat/v1/messages', { ...message, model })).status
  expect(await ask('demo-fast')).toBe(200)
  expect(await ask('vendor-model-demo-fast')).toBe(200)
  expect(await ask('vendor-model-demo-fast')).toBe(429)
  expect(await ask('demo-fast')).toBe(429)
  expect((await here.post('/v1/responses', { ...input, model: 'demo' })).status).toBe(200)
})

test('an administrator changes limits of users and of keys, from the next request on', async () => {
  const here = await start({})
  const admin = { authorization: `Bearer ${await here.token(['admins'], 'admin')}` }
  const send = (method: string, path: string, body: object, headers: Record<string, string>) =>
    here.request(path, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const created = await send(
    'POST',
    '/v1/api-keys',
    { name: 'k', limits: { requests_per_minute: 1 } },
    {
      authorization: `Bearer ${await here.token()}`,
    },
  )
  const { key } = Object(await created.json())
  const byKey = () => send('POST', '/v1/responses', input, { 'x-api-key': key })
  expect((await byKey()).status).toBe(200)
  expect(Object(await (await byKey()).json()).error.message).toContain('of this API key')
  expect((await here.post('/v1/responses', input)).status).toBe(200)
  const patched = await send(
    'PATCH',
    '/v1/config',
    { limits: { group: { users: { requests_per_minute: 0 } } } },
    admin,
  )
  expect(patched.status).toBe(200)
  expect((await here.post('/v1/responses', input)).status).toBe(429)
  await send('PATCH', '/v1/config', { limits: { group: { users: null } } }, admin)
  expect((await here.post('/v1/responses', input)).status).toBe(200)
})

test('a used-up budget is refused in the shape of each surface', async () => {
  const here = await start({ budgets: { default: { tokens_per_day: 5 } } })
  expect((await here.post('/v1/responses', input)).status).toBe(200)
  const refused = await here.post('/v1/responses', input)
  expect(refused.status).toBe(429)
  expect(refused.headers.get('x-should-retry')).toBe('false')
  expect(Object(await refused.json()).error).toMatchObject({
    type: 'insufficient_quota',
    code: 'budget_exceeded',
    message: expect.stringMatching(/resets at \d{4}-\d\d-\d\dT00:00:00Z\.$/),
  })
  const message402 = await here.post('/compat/v1/messages', message)
  expect(message402.status).toBe(402)
  expect(Object(await message402.json()).error.type).toBe('billing_error')
})

test('a soft budget is an entry of the audit log', async () => {
  const here = await start({
    budgets: { default: { soft_cost_per_day: 0.000_001 } },
    prices: { 'demo-fast': { input_per_million: 10, output_per_million: 10 } },
  })
  expect((await here.post('/v1/responses', input)).status).toBe(200)
  await here.deps.budgets.flush()
  const admin = { authorization: `Bearer ${await here.token(['admins'], 'admin')}` }
  const listed = await here.request('/v1/audit-log?action=budget', { headers: admin })
  expect(Object(await listed.json()).data).toEqual([
    expect.objectContaining({ action: 'budget.exceed' }),
  ])
  expect((await here.post('/v1/responses', input)).status).toBe(200)
})
