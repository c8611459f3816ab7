import { afterAll, beforeAll, expect, test } from 'bun:test'
import type {
  ResponsesClientEvent,
  ResponsesServerEvent,
} from 'openai/resources/responses/responses'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readTurn } from '#test/support/socket-client.ts'

/** The `openai` package over a WebSocket. */

let gateway: Gateway
let socket: ResponsesWS

beforeAll(async () => {
  gateway = await startGateway()
  socket = new ResponsesWS(await gateway.openai())
})
afterAll(async () => {
  socket.close()
  await gateway.stop()
})

type Create = Omit<ResponsesClientEvent.ResponseCreate, 'type'>

/** The events up to the terminal one. */
function create(body: Create): Promise<ResponsesServerEvent[]> {
  return new Promise((resolve) => {
    const events: ResponsesServerEvent[] = []
    const take = (event: ResponsesServerEvent) => {
      events.push(event)
      if (!/^response\.(completed|incomplete|failed)$/.test(event.type)) return
      socket.off('event', take)
      resolve(events)
    }
    socket.on('event', take)
    socket.send({ type: 'response.create', ...body })
  })
}

async function respond(body: Create) {
  const events = await create(body)
  const checked = await readTurn(events.map((event) => JSON.stringify(event)))
  return { ...checked, id: String(checked.response?.['id']) }
}

test('responses continue one another, stored or not', async () => {
  const first = await respond({ model: 'demo-fast', input: 'one', store: false })
  expect(first.response).toMatchObject({ status: 'completed' })
  const second = await respond({
    model: 'demo-fast',
    input: 'two',
    store: false,
    previous_response_id: first.id,
  })
  const third = await respond({
    model: 'demo-fast',
    input: 'three',
    previous_response_id: second.id,
  })
  const client = await gateway.openai()
  const found = await client.responses.retrieve(third.id)
  expect(found.output_text).toContain('You said: three')
  const inputs = await Array.fromAsync(client.responses.inputItems.list(third.id))
  expect(inputs).toHaveLength(5)
})

test('a compaction made by POST begins a new chain', async () => {
  const client = await gateway.openai()
  const { id } = await respond({ model: 'demo-fast', input: 'a long talk', store: true })
  const compacted = await client.responses.compact({ model: 'demo-fast', previous_response_id: id })
  const window = compacted.output as Create['input'] & object[]
  const input = [...window, { type: 'message' as const, role: 'user' as const, content: 'go on' }]
  const next = await respond({ model: 'demo-fast', input, store: false })
  expect(next.response).toMatchObject({ status: 'completed', previous_response_id: null })
  const after = await respond({
    model: 'demo-fast',
    input: 'and on',
    store: false,
    previous_response_id: next.id,
  })
  expect(after.response).toMatchObject({ status: 'completed' })
})

test('a tool call is answered in the next request', async () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } }
  const tool = { type: 'function' as const, name: 'get_weather', parameters, strict: false }
  const { id, response } = await respond({
    model: 'demo-tools',
    input: 'weather?',
    tools: [tool],
    store: false,
  })
  const [call] = Object(response)['output']
  const result = { type: 'function_call_output' as const, call_id: call['call_id'], output: 'rain' }
  const answer = await respond({
    model: 'demo-tools',
    input: [result],
    tools: [tool],
    store: false,
    previous_response_id: id,
  })
  expect(JSON.stringify(answer.response)).toContain('The tool returned: rain')
})

test('a failure is an error of the package, and the connection stays open', async () => {
  const failed = new Promise((resolve) => socket.once('error', resolve))
  const unknown = { model: 'demo-fast', input: 'x', previous_response_id: 'resp_none' }
  socket.send({ type: 'response.create', ...unknown })
  expect(await failed).toMatchObject({
    message: expect.stringContaining('not found'),
    error: { type: 'error', status: 400, error: { code: 'previous_response_not_found' } },
  })
  const { response } = await respond({ model: 'demo-fast', input: 'x', store: false })
  expect(response).toMatchObject({ status: 'completed' })
})
