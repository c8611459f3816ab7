import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer, nativeAnswer } from '#test/support/scripted-answers.ts'
import { assistant, text, toolResult, toolUse, user } from './parsing.ts'

/** The requests of upstreams with other protocols. */

let chat: ReplayUpstream
let native: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  chat = await upstreamThat({})
  chat.answer(({ body }) => ({ body: chatAnswer(body) }))
  native = await upstreamThat({})
  native.answer(({ body }) => ({ body: nativeAnswer(body) }))
  gateway = await startGateway({
    upstream: [
      { url: chat.baseUrl, models: ['chat'] },
      { name: 'filing', url: chat.baseUrl, models: ['filing'], files: true, vendorFields: true },
      {
        name: 'going-on',
        url: chat.baseUrl,
        models: ['going-on'],
        prefill: 'continue_final_message',
      },
      { name: 'small', url: chat.baseUrl, models: ['small-upstream'] },
      { name: 'native', api: 'responses', url: native.baseUrl, models: ['native'] },
    ],
    model: [{ name: 'small', upstreams: ['small'], contextWindow: 8_192 }],
  })
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

/** The request body of the upstream of a model. */
async function sent(
  model: string,
  fields: object,
  headers: Record<string, string> = {},
): Promise<JsonObject> {
  const httpResponse = await gateway.request('/compat/v1/messages', {
    method: 'POST',
    headers: { ...json, ...headers },
    body: JSON.stringify({ model, max_tokens: 50, messages: [user('Hi.')], ...fields }),
  })
  const responseText = await httpResponse.text()
  expect(httpResponse.status, responseText).toBe(200)
  const upstream = model === 'native' ? native : chat
  const body: unknown = JSON.parse(upstream.requests.at(-1)?.body ?? '')
  return isRecord(body) ? body : {}
}

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tools = [{ name: 'look', description: 'Looks.', input_schema: schema }]
const worked = [
  user('Look.'),
  assistant(text('I will.'), toolUse('a', 'look', { city: 'Oslo' }), toolUse('b', 'look')),
  user(
    text('And?'),
    toolResult('b', { content: 'No.', is_error: true }),
    toolResult('a', { content: [text('red'), text('blue')] }),
  ),
]

describe('a chat upstream', () => {
  test('gets a plain chat', async () => {
    const system = [text('x-anthropic-billing-header: cch=1'), text('Be kind.'), text('Be brief.')]
    const fields = { system, temperature: 0.5, top_p: 0.9, stop_sequences: ['END'] }
    const body = await sent('chat', { ...fields, messages: [user('Hi.'), user('There.')] })
    expect(body).toMatchObject({
      model: 'chat',
      stream: true,
      max_tokens: 50,
      temperature: 0.5,
      top_p: 0.9,
      messages: [
        { role: 'system', content: 'Be kind.\n\nBe brief.' },
        { role: 'user', content: 'Hi.\n\nThere.' },
      ],
    })
  })

  test('gets no higher limit than its remaining window', async () => {
    const { max_tokens: limit } = await sent('small', { max_tokens: 32_000 })
    expect(limit).toBeGreaterThan(8_000)
    expect(limit).toBeLessThan(8_192)
  })

  test('gets tools, calls and results in the required order', async () => {
    const choice = { type: 'tool', name: 'look', disable_parallel_tool_use: true }
    const body = await sent('chat', { tools, tool_choice: choice, messages: worked })
    const call = (id: string, args: string) => ({
      id,
      type: 'function',
      function: { name: 'look', arguments: args },
    })
    expect(body).toMatchObject({
      tools: [
        { type: 'function', function: { name: 'look', description: 'Looks.', parameters: schema } },
      ],
      tool_choice: { type: 'function', function: { name: 'look' } },
      parallel_tool_calls: false,
    })
    expect(body['messages']).toEqual([
      { role: 'user', content: 'Look.' },
      {
        role: 'assistant',
        content: 'I will.',
        tool_calls: [call('a', '{"city":"Oslo"}'), call('b', '{}')],
      },
      { role: 'tool', tool_call_id: 'a', content: 'red\nblue' },
      { role: 'tool', tool_call_id: 'b', content: '[The tool failed]\nNo.' },
      { role: 'user', content: 'And?' },
    ])
  })

  test('gets system messages within the conversation as text', async () => {
    const late = { role: 'system', content: 'Be brief.' }
    const results = [
      ...worked.slice(0, 2),
      user(toolResult('a', { content: 'red' }), toolResult('b', { content: 'blue' })),
    ]
    const body = await sent('chat', { tools, messages: [...results, late] })
    expect(body['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', content: 'red' },
      { role: 'tool', content: 'blue\n\n[System instruction]\nBe brief.' },
    ])
  })

  test('gets images, and files if supported', async () => {
    const picture = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
    }
    const pdf = {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQ=' },
    }
    const body = await sent('filing', { messages: [user(text('See:'), picture, pdf)] })
    expect(body['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
          {
            type: 'file',
            file: {
              file_data: 'data:application/pdf;base64,JVBERi0xLjQ=',
              filename: 'document.pdf',
            },
          },
        ],
      },
    ])
  })

  test('gets the supported ones of thinking, format, user, session and tier', async () => {
    const answer = { type: 'object', properties: { answer: { type: 'integer' } } }
    const format = { type: 'json_schema', schema: answer }
    const body = await sent(
      'filing',
      {
        thinking: { type: 'enabled', budget_tokens: 10_000 },
        output_config: { format },
        metadata: { user_id: 'someone@example.com' },
        service_tier: 'standard_only',
      },
      { 'x-claude-code-session-id': 'a-session' },
    )
    expect(body).toMatchObject({
      reasoning_effort: 'medium',
      response_format: { type: 'json_schema', json_schema: { schema: answer } },
      safety_identifier: expect.stringMatching(/^[0-9a-f]{64}$/),
      prompt_cache_key: 'a-session',
      service_tier: 'default',
    })
    expect(JSON.stringify(body)).not.toContain('someone')
  })

  test('gets a prefilled message if it continues it, and no such message if not', async () => {
    const messages = [user('JSON?'), assistant('{"a":')]
    expect(await sent('going-on', { messages })).toMatchObject({
      messages: [{ role: 'user' }, { role: 'assistant', content: '{"a":' }],
      continue_final_message: true,
      add_generation_prompt: false,
    })
    const refused = await gateway.post('/compat/v1/messages', {
      model: 'chat',
      max_tokens: 5,
      messages,
    })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('cannot continue a prefilled response')
  })

  test('gets only its own thinking back', async () => {
    const requestBody = { model: 'chat', max_tokens: 50, messages: [user('Please think.')] }
    const answer = Object(await (await gateway.post('/compat/v1/messages', requestBody)).json())
    expect(answer.content).toMatchObject([
      { type: 'thinking', thinking: 'Hm, yes.' },
      { type: 'text', text: 'Yes.' },
    ])
    const [own, said] = answer.content
    const foreign = { type: 'thinking', thinking: 'Not yours.', signature: 'EqQBCkgIARABGAIiQL8a' }
    const altered = {
      ...own,
      thinking: 'Not mine.',
      signature: `${own.signature.slice(0, -4)}AAAA`,
    }
    const body = await sent('chat', {
      messages: [
        ...requestBody.messages,
        // A client may remove the text; the signature contains it.
        assistant({ ...own, thinking: '' }, said),
        user('And?'),
        assistant(foreign, altered, text('So.')),
        user('Well?'),
      ],
    })
    expect(body['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm, yes.' },
      { role: 'user' },
      { role: 'assistant', content: 'So.' },
      { role: 'user' },
    ])
    expect(JSON.stringify(body)).not.toContain('Not ')
  })
})

describe('a Responses upstream', () => {
  test('gets the same conversation as items', async () => {
    const late = { role: 'system', content: 'Be brief.' }
    const body = await sent('native', { system: 'Be kind.', tools, messages: [...worked, late] })
    expect(body).toMatchObject({
      instructions: 'Be kind.',
      max_output_tokens: 50,
      store: false,
      tools: [{ type: 'function', name: 'look', parameters: schema, strict: false }],
      input: [
        { role: 'user' },
        { role: 'assistant', content: 'I will.' },
        { type: 'function_call', call_id: 'a', name: 'look', arguments: '{"city":"Oslo"}' },
        { type: 'function_call', call_id: 'b' },
        { type: 'function_call_output', call_id: 'b', output: '[The tool failed]\nNo.' },
        { type: 'function_call_output', call_id: 'a' },
        { role: 'user', content: [{ type: 'input_text', text: 'And?' }] },
        { role: 'system', content: [{ type: 'input_text', text: 'Be brief.' }] },
      ],
    })
  })

  test('gets a request to reason and to summarize it', async () => {
    const thinking = { type: 'adaptive' }
    const body = await sent('native', { thinking, output_config: { effort: 'high' } })
    expect(body).toMatchObject({
      reasoning: { effort: 'high', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    })
  })
})
