import { afterAll, beforeAll, expect, test } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { type McpGateway, startMcpGateway } from './mcp-gateway.ts'

let world: McpGateway

beforeAll(async () => {
  world = await startMcpGateway()
})

afterAll(() => world.stop())

const weather = { type: 'mcp', server_label: 'docs', allowed_tools: ['get_weather'] }

async function ask(fields: object): Promise<{ status: number; body: JsonObject }> {
  const httpResponse = await world.gateway.post('/v1/responses', {
    model: 'demo-tools',
    input: 'Hi',
    tools: [weather],
    ...fields,
  })
  const body: unknown = await httpResponse.json()
  if (!isRecord(body)) throw new Error('no object')
  return { status: httpResponse.status, body }
}

const output = ({ body }: { body: JsonObject }): JsonObject[] =>
  Array.isArray(body['output']) ? body['output'].filter(isRecord) : []
const types = (response: { body: JsonObject }) => output(response).map(({ type }) => type)

async function askForApproval(fields: object = {}) {
  const response = await ask(fields)
  const request = output(response).find(({ type }) => type === 'mcp_approval_request')
  if (request === undefined) throw new Error('no approval was asked for')
  return { response, request }
}

const reply = (request: JsonObject, approve: boolean) => ({
  type: 'mcp_approval_response',
  approval_request_id: request['id'],
  approve,
})

test('a call that needs approval ends the response, and is not run', async () => {
  const before = world.server.calls.length
  const { response, request } = await askForApproval()
  expect(types(response)).toEqual(['mcp_list_tools', 'mcp_approval_request'])
  expect(response.body['status']).toBe('completed')
  expect(request).toEqual({
    id: expect.stringMatching(/^mcpr_/),
    type: 'mcp_approval_request',
    server_label: 'docs',
    name: 'get_weather',
    arguments: '{"city":"demo"}',
  })
  expect(world.server.calls).toHaveLength(before)
})

test('an approved call runs first, and its item names the approval request', async () => {
  const { response, request } = await askForApproval()
  const input = [reply(request, true)]
  const next = await ask({ previous_response_id: response.body['id'], input })
  expect(output(next)).toMatchObject([
    { type: 'mcp_call', approval_request_id: request['id'], output: 'rain in demo' },
    { type: 'message' },
  ])
})

test('an approval is found in a replayed input as well, and runs once', async () => {
  const { response, request } = await askForApproval({ store: false })
  const approved = [...output(response), reply(request, true)]
  const next = await ask({ store: false, input: approved })
  expect(types(next)).toEqual(['mcp_call', 'message'])
  const before = world.server.calls.length
  const thanks = { role: 'user', content: 'Thanks' }
  const input = [...approved, ...output(next), thanks]
  const last = await ask({ store: false, input, tool_choice: 'none' })
  expect(types(last)).toEqual(['message'])
  expect(world.server.calls).toHaveLength(before)
})

test('an approval is found through a reference to its request', async () => {
  const { request } = await askForApproval()
  const input = [{ type: 'item_reference', id: request['id'] }, reply(request, true)]
  expect(types(await ask({ input }))).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
})

test('a denied call is reported to the model and never runs', async () => {
  const before = world.server.calls.length
  const { response, request } = await askForApproval()
  const input = [{ ...reply(request, false), reason: 'Too dear.' }]
  const next = await ask({ previous_response_id: response.body['id'], input })
  expect(types(next)).toEqual(['message'])
  expect(JSON.stringify(output(next))).toContain('The user did not approve this call. Too dear.')
  expect(world.server.calls).toHaveLength(before)
})

test('an approval of an unknown request is a 400', async () => {
  const answer = await ask({ input: [reply({ id: 'mcpr_unknown' }, true)] })
  expect(answer.status).toBe(400)
  expect(answer.body).toMatchObject({ error: { param: 'input[0].approval_request_id' } })
})

test('an approval requires the server among the tools', async () => {
  const { response, request } = await askForApproval()
  const input = [reply(request, true)]
  const answer = await ask({ previous_response_id: response.body['id'], input, tools: [] })
  expect(answer.status).toBe(400)
  expect(answer.body).toMatchObject({ error: { param: 'tools' } })
})

test('an approved call of a tool that is no longer allowed does not run', async () => {
  const before = world.server.calls.length
  const { response, request } = await askForApproval()
  const next = await ask({
    previous_response_id: response.body['id'],
    input: [reply(request, true)],
    tools: [{ ...weather, allowed_tools: ['fail'], require_approval: 'never' }],
  })
  expect(output(next).find(({ type }) => type === 'mcp_call')).toMatchObject({
    status: 'failed',
    error: { message: 'No such tool.' },
  })
  expect(world.server.calls.slice(before)).not.toContain('get_weather')
})
