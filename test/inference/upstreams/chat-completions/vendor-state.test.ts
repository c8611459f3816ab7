import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import type { RequestItem } from '#inference/request.ts'
import { chatCompletions } from '#inference/upstreams/chat-completions/adapter.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { callDelta, chunk, decodePayloads } from '#test/support/chat-decoding.ts'
import { collectEvents, makeContext, makeRequest, userMessage } from '#test/support/generation.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'

/** What a vendor wants back with the next turn returns to it, and to no other. */

let upstream: ReplayUpstream
beforeEach(async () => {
  upstream = await startReplayUpstream({ status: 500 })
})
afterEach(() => upstream.stop())

const stop = chunk({ content: 'Hi' }, 'stop')
const maker = 'upstream/m'
const answer = { body: chatStream([stop]) }

/** The items of a response as the history of the next request. */
function itemsOf(payloads: readonly unknown[]): RequestItem[] {
  const { events, error } = decodePayloads(payloads, { sealedBy: maker })
  expect(error).toBeNull()
  return events.reduce(addEvent, [])
}

function addEvent(items: RequestItem[], event: GenerationEvent): RequestItem[] {
  const last = items.at(-1)
  if (event.type === 'reasoning-start') {
    return [...items, { type: 'reasoning', summary: [], text: '' }]
  }
  if (event.type === 'reasoning-delta' && last?.type === 'reasoning') last.text += event.text
  if (event.type === 'reasoning-end' && last?.type === 'reasoning') {
    const { sealed, sealedBy } = event
    Object.assign(last, sealed === undefined ? {} : { sealed }, { sealedBy })
  }
  if (event.type === 'tool-call-start') {
    return [...items, { type: 'tool-call', ...event.call, arguments: '{}' }]
  }
  if (event.type === 'text-delta') {
    const part = { type: 'text', text: event.text } as const
    return [...items, { type: 'message', role: 'assistant', parts: [part] }]
  }
  return items
}

/** The messages that this target receives. */
async function messagesFor(target: string, items: readonly RequestItem[]): Promise<JsonObject[]> {
  upstream.answer(answer)
  const [name = '', model = ''] = target.split('/')
  const base = makeContext({ baseUrl: upstream.baseUrl })
  const context = { ...base, model, upstream: { ...base.upstream, name } }
  const request = makeRequest({ items: [userMessage('Go'), ...items, userMessage('On')] })
  const { error } = await collectEvents(chatCompletions.generate(request, context))
  expect(error).toBeNull()
  return asRecord(JSON.parse(upstream.requests.at(-1)?.body ?? ''))['messages'] as JsonObject[]
}

const assistantOf = async (target: string, items: readonly RequestItem[]) =>
  (await messagesFor(target, items)).find(({ role }) => role === 'assistant')

describe('extra_content', () => {
  const signature = (text: string) => ({ google: { thought_signature: text } })
  const [first, second] = callDelta([0, 'a', 'look', '{}'], [1, 'b', 'see', '{}']).tool_calls
  const calls = chunk(
    { tool_calls: [{ ...first, extra_content: signature('A') }, second] },
    'tool_calls',
  )

  test('of a call returns with this call', async () => {
    expect(await assistantOf(maker, itemsOf([calls]))).toMatchObject({
      tool_calls: [{ id: 'a', extra_content: signature('A') }, { id: 'b' }],
    })
  })

  test('that arrives after the beginning of its call returns with it', async () => {
    const late = { index: 0, extra_content: signature('B') }
    const payloads = [chunk({ tool_calls: [first] }), chunk({ tool_calls: [late] }, 'tool_calls')]
    expect(await assistantOf(maker, itemsOf(payloads))).toMatchObject({
      tool_calls: [{ id: 'a', extra_content: signature('B') }],
    })
  })

  test('of the message returns with the message', async () => {
    const said = chunk({ content: 'Hi', extra_content: signature('C') }, 'stop')
    expect(await assistantOf(maker, itemsOf([said]))).toMatchObject({
      content: 'Hi',
      extra_content: signature('C'),
    })
  })

  test.each(['upstream/other', 'other/m'])('is not sent to %s', async (target) => {
    const messages = await messagesFor(target, itemsOf([calls]))
    expect(JSON.stringify(messages)).not.toContain('signature')
    expect(messages.find(({ role }) => role === 'assistant')).toMatchObject({
      tool_calls: [{ id: 'a' }, { id: 'b' }],
    })
  })
})

describe('reasoning_details', () => {
  const text = (piece: object) => ({ type: 'reasoning.text', index: 0, format: 'x', ...piece })
  const encrypted = { type: 'reasoning.encrypted', index: 1, data: 'gAAA', id: 'a' }
  const payloads = [
    chunk({ reasoning: 'I ', reasoning_details: [text({ text: 'I ' })] }),
    chunk({ reasoning: 'see', reasoning_details: [text({ text: 'see' })] }),
    chunk({ reasoning_details: [text({ text: '', signature: 'S' })] }),
    chunk({ ...callDelta([0, 'a', 'look', '{}']), reasoning_details: [encrypted] }, 'tool_calls'),
  ]
  const details = [text({ text: 'I see', signature: 'S' }), encrypted]

  test('return joined, with the reasoning', async () => {
    expect(await assistantOf(maker, itemsOf(payloads))).toMatchObject({
      reasoning_content: 'I see',
      reasoning_details: details,
      tool_calls: [{ id: 'a' }],
    })
  })

  test('after the answer has begun return as well', async () => {
    const late = [chunk({ content: 'Hi' }), chunk({ reasoning_details: [encrypted] }, 'stop')]
    expect(await assistantOf(maker, itemsOf(late))).toMatchObject({
      content: 'Hi',
      reasoning_details: [encrypted],
    })
  })

  test('are shown where the reasoning is nowhere else', () => {
    const only = chunk({ reasoning_details: [text({ text: 'I see' })] })
    expect(itemsOf([only, stop])).toMatchObject([{ type: 'reasoning', text: 'I see' }, {}])
  })

  test('and reasoning_content are sent to no other', async () => {
    const message = await assistantOf('other/m', itemsOf(payloads))
    expect(Object.keys(message ?? {}).toSorted()).toEqual(['content', 'role', 'tool_calls'])
  })

  test('of a message that repeats the response count once', async () => {
    const message = { content: 'Hi', reasoning_details: [encrypted] }
    const repeated = { choices: [{ index: 0, message, finish_reason: 'stop' }] }
    const items = itemsOf([chunk({ reasoning_details: [encrypted] }), repeated])
    expect(await assistantOf(maker, items)).toMatchObject({ reasoning_details: [encrypted] })
  })
})

describe('reasoning without a payload', () => {
  const items = itemsOf([chunk({ reasoning_content: 'Hm.' }), stop])

  test('returns to its maker only', async () => {
    expect(await assistantOf(maker, items)).toMatchObject({ reasoning_content: 'Hm.' })
    expect(await assistantOf('other/m', items)).not.toHaveProperty('reasoning_content')
  })

  test('whose maker is unknown is sent', async () => {
    const unknown: RequestItem[] = items.map((item) =>
      item.type === 'reasoning' ? { type: 'reasoning', summary: [], text: item.text } : item,
    )
    expect(await assistantOf('other/m', unknown)).toMatchObject({ reasoning_content: 'Hm.' })
  })
})

describe('a strict upstream', () => {
  const refusal = (field: string) => ({
    status: 400,
    body: JSON.stringify({
      error: {
        message: `'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property '${field}' is unsupported)]`,
        type: 'invalid_request_error',
      },
    }),
  })
  const serveStrict = (...fields: string[]) => {
    upstream.answer(({ body }) => {
      const refused = fields.find((field) => body.includes(`"${field}":`))
      return refused === undefined ? answer : refusal(refused)
    })
  }
  const reasoning: RequestItem = { type: 'reasoning', summary: [], text: 'Hm.' }
  const said: RequestItem = {
    type: 'message',
    role: 'assistant',
    parts: [{ type: 'text', text: 'Hi' }],
  }
  const sampling = { ...makeRequest().sampling, topK: 5 }

  async function ask(
    name: string,
    request = makeRequest({ items: [userMessage('Go'), reasoning, said] }),
  ) {
    const base = makeContext({ baseUrl: upstream.baseUrl })
    const context = { ...base, upstream: { ...base.upstream, name } }
    const before = upstream.requests.length
    const { error } = await collectEvents(chatCompletions.generate(request, context))
    return { error, requests: upstream.requests.length - before }
  }

  test('is asked again once without what it refused, and remembered', async () => {
    serveStrict('reasoning_content', 'reasoning', 'top_k')
    const request = makeRequest({ items: [userMessage('Go'), reasoning, said], sampling })
    expect(await ask('strict', request)).toEqual({ error: null, requests: 4 })
    expect(await ask('strict', request)).toEqual({ error: null, requests: 1 })
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? '')).toMatchObject({
      messages: [{}, { role: 'assistant', content: 'Hi' }],
    })
    // What another one refuses is unknown.
    expect((await ask('strict-2', request)).requests).toBe(4)
  })

  test('that refuses the request for another reason is not asked again', async () => {
    upstream.answer({ status: 400, body: JSON.stringify({ error: { message: 'no such role' } }) })
    const { error, requests } = await ask('other-reason')
    expect([error?.kind, requests]).toEqual(['invalid_request', 1])
  })

  test('that still refuses is reported, and nothing is remembered', async () => {
    upstream.answer(refusal('reasoning_content'))
    expect(await ask('stubborn')).toMatchObject({ error: { kind: 'invalid_request' }, requests: 2 })
    serveStrict()
    await ask('stubborn')
    expect(upstream.requests.at(-1)?.body).toContain('reasoning_content')
  })

  test('a property of a tool with such a name is kept', async () => {
    serveStrict('reasoning_content')
    const parameters = { type: 'object', properties: { reasoning: { type: 'string' } } }
    const tool = {
      type: 'function',
      name: 'f',
      description: null,
      parameters,
      strict: null,
    } as const
    await ask('tools', makeRequest({ items: [userMessage('Go'), reasoning, said], tools: [tool] }))
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? '')).toMatchObject({
      tools: [{ function: { parameters } }],
    })
  })
})

test('top_k is sent where it is set', async () => {
  upstream.answer(answer)
  const context = makeContext({ baseUrl: upstream.baseUrl })
  const request = makeRequest()
  const sampled = makeRequest({ sampling: { ...request.sampling, topK: 5 } })
  await collectEvents(chatCompletions.generate(sampled, context))
  expect(JSON.parse(upstream.requests.at(-1)?.body ?? '')).toMatchObject({ top_k: 5 })
  await collectEvents(chatCompletions.generate(request, context))
  expect(upstream.requests.at(-1)?.body).not.toContain('top_k')
})
