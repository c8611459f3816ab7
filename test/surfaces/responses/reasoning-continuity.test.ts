import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'

/** Conversations whose state is kept by the client only. */

const payload = 'gAAA-what-the-upstream-sealed'
const include = ['reasoning.encrypted_content']

/** A native upstream that reasons, encrypts its reasoning, and sends a summary of it. */
function nativeAnswer(): string {
  const summary = [{ type: 'summary_text', text: 'In short.' }]
  const reasoning = { type: 'reasoning', id: 'r', summary, encrypted_content: payload }
  const content = [{ type: 'output_text', text: 'Yes.' }]
  const message = { type: 'message', id: 'm', role: 'assistant', content }
  const output = [reasoning, message]
  const events = [
    { type: 'response.created', response: { id: 'x', status: 'in_progress' } },
    ...output.map((item, at) => ({ type: 'response.output_item.done', output_index: at, item })),
    { type: 'response.completed', response: { id: 'x', status: 'completed', output } },
  ]
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
}

let chat: ReplayUpstream
let natives: ReplayUpstream[]
let gateway: Gateway

beforeAll(async () => {
  chat = await startReplayUpstream(({ body }) => ({ body: chatAnswer(body) }))
  natives = [
    await startReplayUpstream(() => ({ body: nativeAnswer() })),
    await startReplayUpstream(() => ({ body: nativeAnswer() })),
  ]
  gateway = await startGateway({
    upstream: [chat, ...natives].map(({ baseUrl }, at) => ({
      url: baseUrl,
      api: at === 0 ? 'chat' : 'responses',
      models: [],
    })),
    model: ['chat', 'native', 'other-native'].map((name, at) => ({
      name,
      upstreams: [`upstream-${at}`],
      upstreamModel: 'the-model',
    })),
  })
})

afterEach(() => {
  for (const { requests } of [chat, ...natives]) (requests as unknown[]).length = 0
})

afterAll(async () => {
  await gateway.stop()
  for (const upstream of [chat, ...natives]) await upstream.stop()
})

type Item = JsonObject & { type: string }

const ask = async (body: object): Promise<Item[]> => {
  const response = await gateway.post('/v1/responses', { store: false, ...body })
  const answer = (await response.json()) as { output?: Item[] }
  if (answer.output === undefined) throw new Error(JSON.stringify(answer))
  return answer.output
}
const question = { role: 'user', content: 'Please think.' }
const next = { role: 'user', content: 'Go on.' }
const lastBody = (upstream: ReplayUpstream | undefined) =>
  JSON.parse(upstream?.requests.at(-1)?.body ?? '{}')
const reasoningOf = (output: readonly Item[]) => output.find(({ type }) => type === 'reasoning')

describe('a chat upstream', () => {
  test('gets its own reasoning back, which the client could not read', async () => {
    const output = await ask({ model: 'chat', input: [question], include })
    const reasoning = reasoningOf(output)
    expect(reasoning?.['encrypted_content']).toBeString()
    expect(reasoning).not.toHaveProperty('content')
    await ask({ model: 'chat', input: [question, ...output, next], include })
    expect(lastBody(chat).messages.slice(1)).toEqual([
      { role: 'assistant', content: 'Yes.', reasoning: 'Hm, yes.', reasoning_content: 'Hm, yes.' },
      { role: 'user', content: 'Go on.' },
    ])
  })

  test('gets it too if the client did not request encrypted content', async () => {
    const output = await ask({ model: 'chat', input: [question] })
    expect(reasoningOf(output)).toMatchObject({
      content: [{ type: 'reasoning_text', text: 'Hm, yes.' }],
    })
    expect(reasoningOf(output)).not.toHaveProperty('encrypted_content')
    await ask({ model: 'chat', input: [question, ...output, next] })
    expect(lastBody(chat).messages[1]).toMatchObject({ reasoning_content: 'Hm, yes.' })
  })

  test('streams what it returns without streaming, with one seal per item', async () => {
    const body = { model: 'chat', input: [question], include, store: false, stream: true }
    const response = await gateway.post('/v1/responses', body)
    const { frames, response: object } = checkStream(await response.text())
    const output = object['output'] as Item[]
    const done = frames.find(({ type }) => type === 'response.output_item.done')
    expect<unknown>(done?.['item']).toEqual(output[0])
    expect(output[0]?.['encrypted_content']).toBeString()
  })
})

describe('a native upstream', () => {
  test('gets its own payload back, which the client never saw in plain text', async () => {
    const output = await ask({ model: 'native', input: [question], include })
    expect(JSON.stringify(output)).not.toContain(payload)
    expect(reasoningOf(output)?.['encrypted_content']).toBeString()
    await ask({ model: 'native', input: [question, ...output, next], include })
    expect(lastBody(natives[0]).input[1]).toEqual({
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'In short.' }],
      encrypted_content: payload,
    })
  })

  test('never gets the payload of another upstream', async () => {
    const output = await ask({ model: 'native', input: [question], include })
    await ask({ model: 'other-native', input: [question, ...output, next], include })
    expect(natives[1]?.requests).toHaveLength(1)
    expect(natives[1]?.requests[0]?.body).not.toContain(payload)
    expect(natives[1]?.requests[0]?.body).not.toContain('In short.')
  })

  test('gets a payload that the client has from another service', async () => {
    const foreign = { type: 'reasoning', id: 'rs_x', summary: [], encrypted_content: 'gBBB' }
    await ask({ model: 'native', input: [question, foreign, next] })
    expect(lastBody(natives[0]).input[1]).toMatchObject({ encrypted_content: 'gBBB' })
  })

  test('finds its payload in stored responses, whether it was returned or not', async () => {
    const first = await gateway.post('/v1/responses', { model: 'native', input: [question] })
    const { id, output } = (await first.json()) as { id: string; output: Item[] }
    expect(reasoningOf(output)).not.toHaveProperty('encrypted_content')
    await ask({ model: 'native', input: 'Go on.', previous_response_id: id })
    expect(lastBody(natives[0]).input[1]).toMatchObject({ encrypted_content: payload })
    const shown = async (query: string) => {
      const stored = await gateway.request(`/v1/responses/${id}${query}`)
      return reasoningOf(((await stored.json()) as { output: Item[] }).output)
    }
    expect(await shown('')).not.toHaveProperty('encrypted_content')
    expect(await shown('?include=reasoning.encrypted_content')).toHaveProperty('encrypted_content')
  })
})

describe('encrypted reasoning', () => {
  test('that was altered, or belongs to another user, is refused', async () => {
    const output = await ask({ model: 'chat', input: [question], include })
    const refusal = {
      error: {
        type: 'invalid_request_error',
        code: 'invalid_encrypted_content',
        param: 'input[1].encrypted_content',
        message: expect.stringContaining('cannot be decrypted'),
      },
    }
    const body = (items: readonly Item[]) =>
      JSON.stringify({ model: 'chat', store: false, input: [question, ...items, next] })
    const altered = output.map((item) =>
      item.type === 'reasoning'
        ? { ...item, encrypted_content: `${String(item['encrypted_content']).slice(0, -4)}AAAA` }
        : item,
    )
    const refused = await gateway.post('/v1/responses', body(altered))
    expect([refused.status, await refused.json()]).toEqual([400, refusal])
    const authorization = `Bearer ${await gateway.token(['users'], 'somebody else')}`
    const theirs = await gateway.request('/v1/responses', {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: body(output),
    })
    expect([theirs.status, await theirs.json()]).toEqual([400, refusal])
    expect(chat.requests).toHaveLength(1)
  })
})
