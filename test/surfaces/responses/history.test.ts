import { describe, expect, test } from 'bun:test'
import type { StoredItem } from '#responses/response.ts'
import {
  type HistorySources,
  loadHistory,
  noHistory,
  readHistoryRequest,
} from '#surfaces/responses/history.ts'
import { parseCreateResponse } from '#surfaces/responses/parse.ts'
import { context } from './parsing.ts'

const storedMessage = (id: string, role: string, text: string): StoredItem => ({
  id,
  type: 'message',
  role,
  content: [{ type: role === 'user' ? 'input_text' : 'output_text', text }],
})
const question = storedMessage('msg_q', 'user', 'What is it?')
const answer = storedMessage('msg_a', 'assistant', 'It is a sluice.')

/** Sources with one conversation, one chain and one item, all of `alice`. */
const sources: HistorySources = {
  chain: async (owner, id) => {
    if (owner !== 'alice') return undefined
    if (id === 'resp_open') return { status: 'in_progress', items: [] }
    return id === 'resp_1' ? { status: 'completed', items: [question, answer] } : undefined
  },
  findItems: async (owner, ids) =>
    new Map(
      owner === 'alice' && ids.includes('msg_far')
        ? [['msg_far', storedMessage('msg_far', 'user', 'far')]]
        : [],
    ),
  conversationItems: async (owner, id) =>
    owner === 'alice' && id === 'conv_1' ? [question] : undefined,
}

const load = (body: object, ownerId = 'alice') =>
  loadHistory(sources, { ownerId, request: readHistoryRequest(body), memory: undefined })

const textsOf = async (body: object) => {
  const history = await load(body)
  const { request, storedInput } = parseCreateResponse(
    { model: 'm', ...body },
    { ...context, history },
  )
  const texts = request.items.map((item) =>
    item.type === 'message'
      ? item.parts.map((part) => ('text' in part ? part.text : '')).join()
      : '',
  )
  return { texts, storedInput }
}

describe('the history of a request', () => {
  test('is a previous response, which is not stored again', async () => {
    const { texts, storedInput } = await textsOf({ input: 'And?', previous_response_id: 'resp_1' })
    expect(texts).toEqual(['What is it?', 'It is a sluice.', 'And?'])
    expect(storedInput).toMatchObject([
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And?' }] },
    ])
  })

  test('is a conversation, by its id or in an object', async () => {
    for (const conversation of ['conv_1', { id: 'conv_1' }]) {
      expect((await textsOf({ input: 'And?', conversation })).texts).toEqual([
        'What is it?',
        'And?',
      ])
    }
  })

  test('makes the input optional', async () => {
    for (const body of [{}, { input: [] }, { input: '' }]) {
      const { texts } = await textsOf({ ...body, previous_response_id: 'resp_1' })
      expect(texts).toEqual(['What is it?', 'It is a sluice.'])
    }
  })

  test('can be referenced: an item replaces its reference, and is stored with its id', async () => {
    const named = await textsOf({ input: [{ type: 'item_reference', id: 'msg_far' }] })
    expect(named.texts).toEqual(['far'])
    expect(named.storedInput.map(({ id }) => id)).toEqual(['msg_far'])
  })

  test('contains a referenced item only once', async () => {
    const input = [{ id: 'msg_a' }, { role: 'user', content: 'And?' }]
    const { texts, storedInput } = await textsOf({ input, previous_response_id: 'resp_1' })
    expect(texts).toEqual(['What is it?', 'It is a sluice.', 'And?'])
    expect(storedInput).toHaveLength(1)
  })

  test('can contain the call of a tool output', async () => {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}' }
    const body = {
      model: 'm',
      input: [{ type: 'function_call_output', call_id: 'c', output: 'done' }],
    }
    const history = { items: [call], referable: new Map() }
    const { request } = parseCreateResponse(body, { ...context, history })
    expect(request.items.map(({ type }) => type)).toEqual(['tool-call', 'tool-result'])
    expect(() => parseCreateResponse(body, { ...context, history: noHistory })).toThrow(
      'no earlier call',
    )
  })
})

describe('an invalid history', () => {
  const rows: [body: object, expected: object][] = [
    [
      { previous_response_id: 'resp_2' },
      { status: 400, wireCode: 'previous_response_not_found', param: 'previous_response_id' },
    ],
    [
      { previous_response_id: 'resp_open' },
      { status: 409, wireCode: 'previous_response_not_finished', param: 'previous_response_id' },
    ],
    [{ conversation: 'conv_2' }, { status: 404, wireCode: 'not_found', param: 'conversation' }],
    [{ conversation: 7 }, { status: 400, param: 'conversation' }],
    [
      { conversation: 'conv_1', previous_response_id: 'resp_1' },
      { status: 400, param: 'conversation' },
    ],
  ]
  test.each(rows)('%j', async (body, expected) => {
    const failure = await textsOf({ input: 'x', ...body }).catch((error: unknown) => error)
    expect(failure).toMatchObject(expected)
  })

  test.each([
    { previous_response_id: 'resp_1' },
    { conversation: 'conv_1' },
    { input: [{ id: 'msg_far' }] },
  ])('of another user is not found: %j', async (body) => {
    const history = load({ input: 'x', ...body }, 'bob')
    const failure = await history
      .then((found) =>
        parseCreateResponse({ model: 'm', input: 'x', ...body }, { ...context, history: found }),
      )
      .catch((error: unknown) => error)
    const absent = await textsOf(
      JSON.parse(JSON.stringify({ input: 'x', ...body }).replace(/_(1|far)"/, '_9"')),
    ).catch((error: unknown) => error)
    expect(Object(failure)['wireCode']).toBe(Object(absent)['wireCode'])
    expect(Object(failure)['message']).toBe(
      String(Object(absent)['message']).replace(
        /_9"/,
        /resp|conv/.test(JSON.stringify(body)) ? '_1"' : '_far"',
      ),
    )
  })
})
