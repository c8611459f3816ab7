import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSocket, type SocketClient } from '#test/support/socket-client.ts'

/** Objects of other users are not found, over a WebSocket as over HTTP. */

let gateway: Gateway
let ann: SocketClient
let bob: SocketClient
/** Ann's. */
let responseId: unknown
let itemId: unknown
let conversationId: unknown

beforeAll(async () => {
  gateway = await startGateway()
  const open = async (subject: string) => {
    const token = await gateway.token(['users'], subject)
    return openSocket(gateway.port, { headers: { authorization: `Bearer ${token}` } })
  }
  ann = await open('ann')
  bob = await open('bob')
  const { response } = await ann.turn({ model: 'demo-fast', input: 'mine' })
  responseId = response?.['id']
  itemId = Object(response)['output'][0]['id']
  const made = await gateway.request('/v1/conversations', {
    method: 'POST',
    headers: { authorization: `Bearer ${await gateway.token(['users'], 'ann')}` },
    body: JSON.stringify({ items: [{ role: 'user', content: 'mine' }] }),
  })
  conversationId = Object(await made.json())['id']
})
afterAll(async () => {
  ann.socket.destroy()
  bob.socket.destroy()
  await gateway.stop()
})

const ways: [what: string, request: () => object, absent: () => object][] = [
  [
    'a response to continue',
    () => ({ previous_response_id: responseId, input: 'x' }),
    () => ({ previous_response_id: 'resp_00000000000000000000000000', input: 'x' }),
  ],
  [
    'an item to reference',
    () => ({ input: [{ type: 'item_reference', id: itemId }] }),
    () => ({ input: [{ type: 'item_reference', id: 'msg_00000000000000000000000000' }] }),
  ],
  [
    'a conversation to continue',
    () => ({ conversation: conversationId, input: 'x' }),
    () => ({ conversation: 'conv_00000000000000000000000000', input: 'x' }),
  ],
]

test.each(ways)(
  '%s is available to its owner and not found by another user',
  async (_, request, absent) => {
    for (const more of [{}, { store: false }, { generate: false }]) {
      const body = { model: 'demo-fast', ...more }
      const own = await ann.turn({ ...body, ...request() })
      expect(own.response).toMatchObject({ status: 'completed' })
      const { failure } = await bob.turn({ ...body, ...request() })
      expect(failure).toBeDefined()
      const { failure: nothing } = await bob.turn({ ...body, ...absent() })
      const masked = (text: unknown) => String(text).replace(/"\w+_\w+"/, 'ID')
      expect({ ...failure, message: masked(failure?.message) }).toEqual({
        ...nothing,
        status: nothing?.status,
        code: nothing?.code,
        message: masked(nothing?.message),
      })
    }
  },
)

test('the history of one connection is not available to another, of any user', async () => {
  const { response } = await ann.turn({ model: 'demo-fast', input: 'secret', store: false })
  const request = { model: 'demo-fast', input: 'x', previous_response_id: response?.['id'] }
  for (const store of [true, false]) {
    const { failure } = await bob.turn({ ...request, store })
    expect(failure).toMatchObject({ status: 400, code: 'previous_response_not_found' })
  }
  const [item] = Object(response)['output']
  const named = [{ type: 'item_reference', id: item['id'] }]
  expect((await bob.turn({ model: 'demo-fast', input: named })).failure?.status).toBe(404)
  expect((await ann.turn({ ...request, store: false })).failure).toBeUndefined()
})

test('a stored response can be continued on any connection of its owner', async () => {
  const token = await gateway.token(['users'], 'ann')
  const other = await openSocket(gateway.port, { headers: { authorization: `Bearer ${token}` } })
  const request = { model: 'demo-fast', previous_response_id: responseId, input: 'x' }
  const { response } = await other.turn({ ...request, store: false })
  expect(response).toMatchObject({ status: 'completed', previous_response_id: responseId })
  const next = { ...request, previous_response_id: response?.['id'], store: false }
  expect((await other.turn(next)).response).toMatchObject({ status: 'completed' })
  other.socket.destroy()
})
