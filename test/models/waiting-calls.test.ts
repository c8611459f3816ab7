import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Calls that wait for the only slot of an upstream, as clients see them. */

const whole = chatStream([chunk({ content: 'one two' }), chunk({}, 'stop')])
const json = {
  object: 'chat.completion',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'one two' }, finish_reason: 'stop' },
  ],
}

/** The requests that the upstream has not answered yet. */
type Held = { readonly prompt: string; readonly answer: () => void }
const held: Held[] = []
const prompts: string[] = []
let isOpen = false

const upstream = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  async fetch(request) {
    const body = (await request.json()) as { stream?: boolean; messages?: { content: string }[] }
    const prompt = body.messages?.at(-1)?.content ?? ''
    prompts.push(prompt)
    const { promise, resolve } = Promise.withResolvers<void>()
    const entry = { prompt, answer: resolve }
    held.push(entry)
    request.signal.addEventListener('abort', () => resolve())
    if (isOpen) resolve()
    await promise
    held.splice(held.indexOf(entry), 1)
    if (body.stream !== true) return Response.json(json)
    return new Response(whole, { headers: { 'content-type': 'text/event-stream' } })
  },
})

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({
    upstream: [{ name: 'gpu', url: `${upstream.url.href}v1`, models: ['m'], maxInFlight: 1 }],
    stream: { heartbeatMs: 20 },
    queue: { waitingMax: 3, waitingPerPrincipalMax: 2, waitMaxMs: 30_000 },
  })
})
beforeEach(() => {
  isOpen = false
  prompts.length = 0
})
afterEach(async () => {
  isOpen = true
  for (const { answer } of held) answer()
  await waits(0)
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop(true)
})

const post = async (
  body: object,
  { user = 'anne', path = '/v1/responses', signal = null as AbortSignal | null } = {},
) =>
  checkedFetch(gateway.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${await gateway.token(['users'], user)}`,
    },
    body: JSON.stringify({ model: 'm', ...body }),
    signal,
  })
const respond = (input: string, more: object = {}) => ({ input, store: false, ...more })

/** Takes the slot; returns how to give it back. */
async function occupy(): Promise<() => Promise<void>> {
  const answer = post(respond('occupies'), { user: 'occupier' })
  await eventually('the slot is taken', () => held.length === 1)
  return async () => {
    held[0]?.answer()
    expect((await answer).status).toBe(200)
  }
}

async function waitingCalls(): Promise<number> {
  const text = await (await gateway.request('/metrics')).text()
  const lines = text.split('\n').filter((line) => line.startsWith('sluice_queue_waiting{'))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

const waits = (count: number) =>
  eventually(`${count} calls wait`, async () => (await waitingCalls()) === count)

test.each([true, false])(
  'a waiting response of the OpenAI client stays alive (store: %p)',
  async (store) => {
    const free = await occupy()
    const client = new OpenAI({
      baseURL: `${gateway.url}/v1`,
      apiKey: await gateway.token(),
      maxRetries: 0,
    })
    const stream = await client.responses.create({ model: 'm', input: 'x', store, stream: true })
    let beats = 0
    let text = ''
    for await (const event of stream) {
      if (event.type === 'response.in_progress' && ++beats === 5) {
        isOpen = true
        await free()
      }
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    expect([text, beats >= 5]).toEqual(['one two', true])
  },
)

test('a waiting message of the Anthropic client stays alive', async () => {
  const free = await occupy()
  const heard = Promise.withResolvers<void>()
  const listening = async (...request: Parameters<typeof fetch>) => {
    const { body, headers } = await fetch(...request)
    if (body === null) throw new Error('no body')
    const [mine, theirs] = body.tee()
    void countPings(mine, 5, heard.resolve)
    return new Response(theirs, { headers })
  }
  const client = new Anthropic({
    baseURL: `${gateway.url}/compat`,
    authToken: await gateway.token(),
    apiKey: null,
    maxRetries: 0,
    fetch: listening,
  })
  const messages = [{ role: 'user' as const, content: 'x' }]
  const stream = client.messages.stream({ model: 'm', max_tokens: 9, messages })
  await heard.promise
  isOpen = true
  await free()
  expect(await stream.finalText()).toBe('one two')
})

async function countPings(body: ReadableStream<Uint8Array>, count: number, reached: () => void) {
  let text = ''
  for await (const bytes of body) {
    text += new TextDecoder().decode(bytes)
    if (text.split('event: ping').length > count) reached()
  }
}

const retryAfter = ({ headers }: Response) => Number(headers.get('retry-after')) >= 1

test('a refusal is an HTTP status of the surface with retry-after', async () => {
  const free = await occupy()
  const waiting = [post(respond('1')), post(respond('2'))]
  await waits(2)
  waiting.push(post(respond('3'), { user: 'ben' }))
  await waits(3)
  const own = await post(respond('4'))
  expect([own.status, retryAfter(own)]).toEqual([429, true])
  expect(await own.json()).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
  const full = await post(respond('5', { stream: true }), { user: 'carl' })
  expect([full.status, retryAfter(full)]).toEqual([503, true])
  expect(await full.json()).toMatchObject({ error: { code: 'queue_full', type: 'server_error' } })
  const message = { max_tokens: 9, messages: [{ role: 'user', content: 'x' }], stream: true }
  const overloaded = await post(message, { user: 'carl', path: '/compat/v1/messages' })
  expect([overloaded.status, retryAfter(overloaded)]).toEqual([529, true])
  expect(await overloaded.json()).toMatchObject({ error: { type: 'overloaded_error' } })
  isOpen = true
  await free()
  for (const response of waiting) expect((await response).status).toBe(200)
})

test('the slots alternate between principals', async () => {
  const free = await occupy()
  const waiting = [post(respond('anne 1')), post(respond('anne 2'))]
  await waits(2)
  waiting.push(post(respond('ben 1'), { user: 'ben' }))
  await waits(3)
  isOpen = true
  await free()
  await Promise.all(waiting)
  expect(prompts.indexOf('ben 1')).toBe(2)
})

test('a client that disconnects while it waits leaves the queue', async () => {
  const free = await occupy()
  for (const stream of [true, false]) {
    const client = new AbortController()
    const waiting = post(respond('gone', { stream }), { signal: client.signal }).then((response) =>
      response.text(),
    )
    await waits(1)
    client.abort()
    expect(await waiting.catch((error) => error.name)).toBe('AbortError')
    await waits(0)
  }
  isOpen = true
  await free()
  expect((await post(respond('next'))).status).toBe(200)
  expect(prompts).toEqual(['occupies', 'next'])
})

test('background responses yield to interactive ones', async () => {
  const free = await occupy()
  const accepted = await post({ input: 'background', background: true })
  const { id } = (await accepted.json()) as { id: string }
  await waits(1)
  const interactive = post(respond('interactive'), { user: 'ben' })
  await waits(2)
  isOpen = true
  await free()
  expect((await interactive).status).toBe(200)
  const headers = { authorization: `Bearer ${await gateway.token(['users'], 'anne')}` }
  await eventually('the background response is complete', async () => {
    const found = await gateway.request(`/v1/responses/${id}`, { headers })
    return ((await found.json()) as { status: string }).status === 'completed'
  })
  expect(prompts).toEqual(['occupies', 'interactive', 'background'])
})

test.each([
  ['/v1/responses', { input: 'x', store: false }, /event: response\.failed\n.*queue_timeout/],
  ['/v1/responses', { input: 'x', store: true }, /event: response\.failed\n.*queue_timeout/],
  [
    '/compat/v1/messages',
    { max_tokens: 9, messages: [{ role: 'user', content: 'x' }] },
    /event: error\n.*overloaded_error/,
  ],
])('after heartbeats a refusal of %s %p ends the stream', async (path, body, ending) => {
  const hurried = await startGateway({
    upstream: [{ name: 'gpu', url: `${upstream.url.href}v1`, models: ['m'], maxInFlight: 1 }],
    stream: { heartbeatMs: 20 },
    queue: { waitMaxMs: 300 },
  })
  const send = async (sent: object, to: string) =>
    checkedFetch(hurried.url + to, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${await hurried.token()}`,
      },
      body: JSON.stringify({ model: 'm', ...sent }),
    })
  const first = send(respond('occupies'), '/v1/responses')
  await eventually('the slot is taken', () => held.length === 1)
  const waiting = await send({ ...body, stream: true }, path)
  expect(waiting.status).toBe(200)
  expect(await waiting.text()).toMatch(ending)
  held[0]?.answer()
  expect((await first).status).toBe(200)
  await hurried.stop()
})
