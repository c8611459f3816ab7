import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** Objects of other users are not found, with every method. */

let gateway: Gateway
let alice: Record<string, string>
let bob: Record<string, string>
let responseId = ''
let itemId = ''
let conversationId = ''

beforeAll(async () => {
  gateway = await startGateway()
  const bearer = async (subject: string) => ({
    authorization: `Bearer ${await gateway.token(['users'], subject)}`,
  })
  alice = await bearer('alice')
  bob = await bearer('bob')
  const made = await ask(alice, { input: 'mine', model: 'demo-fast' })
  responseId = made.body['id']
  itemId = made.body['output'][0]['id']
  const conversation = await send(alice, 'POST', '/v1/conversations', {
    items: [{ role: 'user', content: 'mine' }],
  })
  conversationId = conversation.body['id']
})
afterAll(() => gateway.stop())

async function send(headers: Record<string, string>, method: string, path: string, body?: object) {
  const httpResponse = await gateway.request(path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await httpResponse.text()
  return { status: httpResponse.status, text, body: Object(JSON.parse(text)) }
}

function ask(headers: Record<string, string>, body: object) {
  return send(headers, 'POST', '/v1/responses', body)
}

type Row = [what: string, method: string, path: string, body: object | null]

/** `R`, `I` and `C` are placeholders of the ids. */
const rows: Row[] = [
  ['a response', 'GET', '/v1/responses/R', null],
  ['its stream', 'GET', '/v1/responses/R?stream=true', null],
  ['the rest of its stream', 'GET', '/v1/responses/R?stream=true&starting_after=3', null],
  ['its input', 'GET', '/v1/responses/R/input_items', null],
  ['its end', 'POST', '/v1/responses/R/cancel', null],
  ['its deletion', 'DELETE', '/v1/responses/R', null],
  ['a continuation', 'POST', '/v1/responses', { previous_response_id: 'R', input: 'x' }],
  [
    'a continuation with streaming',
    'POST',
    '/v1/responses',
    { previous_response_id: 'R', input: 'x', stream: true },
  ],
  [
    'a continuation in the background',
    'POST',
    '/v1/responses',
    { previous_response_id: 'R', input: 'x', background: true },
  ],
  [
    'a token count',
    'POST',
    '/v1/responses/input_tokens',
    { previous_response_id: 'R', input: 'x' },
  ],
  ['a compaction', 'POST', '/v1/responses/compact', { previous_response_id: 'R' }],
  [
    'a reference to an item',
    'POST',
    '/v1/responses',
    { input: [{ type: 'item_reference', id: 'I' }] },
  ],
  ['a conversation', 'GET', '/v1/conversations/C', null],
  ['an update of it', 'POST', '/v1/conversations/C', { metadata: { a: 'b' } }],
  ['its items', 'GET', '/v1/conversations/C/items', null],
  [
    'a new item of it',
    'POST',
    '/v1/conversations/C/items',
    { items: [{ role: 'user', content: 'x' }] },
  ],
  ['an item of it', 'GET', '/v1/conversations/C/items/I', null],
  ['the deletion of an item', 'DELETE', '/v1/conversations/C/items/I', null],
  ['a response in it', 'POST', '/v1/responses', { conversation: 'C', input: 'x' }],
  ['its deletion', 'DELETE', '/v1/conversations/C', null],
]

describe('another user gets nothing', () => {
  test.each(rows)('of %s', async (_, method, path, body) => {
    const fill = (text: string, ids: [string, string, string]) =>
      text.replaceAll(/\b[RIC]\b/g, (sign) => ids['RIC'.indexOf(sign)] ?? '')
    const request = (ids: [string, string, string]) => {
      const filled = body && JSON.parse(fill(JSON.stringify({ model: 'demo-fast', ...body }), ids))
      return send(bob, method, fill(path, ids), filled ?? undefined)
    }
    const unknown: [string, string, string] = [
      `resp_${'0'.repeat(26)}`,
      `msg_${'0'.repeat(26)}`,
      `conv_${'0'.repeat(26)}`,
    ]
    const foreign = await request([responseId, itemId, conversationId])
    const absent = await request(unknown)
    expect(foreign.status).toBeOneOf([400, 404])
    const places = [responseId, itemId, conversationId]
    const unnamed = places.reduce(
      (text, id, at) => text.replaceAll(id, unknown[at] ?? ''),
      foreign.text,
    )
    expect([foreign.status, unnamed]).toEqual([absent.status, absent.text])
  })

  test('and the owner still has it', async () => {
    expect((await send(alice, 'GET', `/v1/responses/${responseId}`)).status).toBe(200)
    expect((await send(alice, 'GET', `/v1/conversations/${conversationId}`)).status).toBe(200)
    const next = await ask(alice, {
      model: 'demo-fast',
      input: [
        { type: 'item_reference', id: itemId },
        { role: 'user', content: 'and?' },
      ],
      previous_response_id: responseId,
    })
    expect(next.body['status']).toBe('completed')
  })
})
