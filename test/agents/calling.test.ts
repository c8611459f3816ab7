import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { systemPrincipal } from '#lib/request-context.ts'
import { eventually } from '#test/support/eventually.ts'
import type { Gateway } from '#test/support/gateway.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'
import { type McpGateway, startMcpGateway } from '#test/surfaces/responses/mcp-gateway.ts'
import { ann, bob, codeOf, makeAgent, send } from './world.ts'

let upstream: ReplayUpstream
let world: McpGateway
let gateway: Gateway

const model = { upstreams: ['upstream-0'], upstreamModel: 'upstream-name' }

beforeAll(async () => {
  upstream = await startReplayUpstream(({ body }) => ({ body: chatAnswer(body) }))
  world = await startMcpGateway({
    upstream: [{ url: upstream.baseUrl, models: [] }, { api: 'demo' }],
    model: [
      { ...model, name: 'house', contextWindow: 4_096, capabilities: ['tools'] },
      { ...model, name: 'embedder', mode: 'embed' },
    ],
    responses: { backgroundRunningMax: 1 },
    toml: 'groups = ["staff"]\n',
  })
  gateway = world.gateway
  await eventually(
    'the demo is there',
    () => gateway.deps.catalogue.find(systemPrincipal, 'demo') !== undefined,
  )
})
afterAll(async () => {
  await world.stop()
  await upstream.stop()
})
beforeEach(() => upstream.answer(({ body }) => ({ body: chatAnswer(body) })))

const make = (fields: object = {}, owner = ann) =>
  makeAgent(gateway, owner, { model: 'house', visibility: { kind: 'everyone' }, ...fields })

async function call(id: string, fields: object = {}, caller = bob): Promise<JsonObject> {
  const json = { model: `vendor-agent-${id}`, input: 'Hi', ...fields }
  const { status, text, body } = await send(gateway, caller, '/v1/responses', { json })
  if (status !== 200) throw new Error(text)
  return body
}

/** The last request to the upstream. */
function upstreamRequest(): JsonObject {
  const body: unknown = JSON.parse(upstream.requests.at(-1)?.body ?? '')
  if (!isRecord(body)) throw new Error('no upstream request')
  return body
}

const toolNames = () =>
  Object(upstreamRequest()['tools']).map((tool: JsonObject) => Object(tool['function']).name)
const tool = (name: string, description: string) => ({ type: 'function', name, description })

describe('a request to an agent', () => {
  test('names the model upstream and the agent in the response', async () => {
    const id = await make()
    expect((await call(id))['model']).toBe(`vendor-agent-${id}`)
    expect((await call(id, { model: id }))['model']).toBe(id)
    expect(upstreamRequest()['model']).toBe('upstream-name')
  })

  test('has the instructions of the agent before its own', async () => {
    const id = await make({ instructions: 'Speak like a pirate.' })
    const response = await call(id, { instructions: 'Be brief.' })
    const messages = Object(upstreamRequest()['messages'])
    expect(messages[0]).toEqual({
      role: 'system',
      content: 'Speak like a pirate.\n\nBe brief.',
    })
    expect(response['instructions']).toBe('Be brief.')
    await call(id)
    expect(Object(upstreamRequest()['messages'])[0].content).toBe('Speak like a pirate.')
  })

  test('does not disclose the definition of the agent', async () => {
    const id = await make({
      instructions: 'The secret is 4711.',
      sampling: { temperature: 0.25 },
    })
    const response = JSON.stringify(await call(id))
    for (const word of ['4711', '0.25', 'house']) expect(response).not.toContain(word)
  })

  test('has the tools of both; its own take precedence', async () => {
    const id = await make({ tools: [tool('a', 'Agent’s.'), tool('b', 'Agent’s.')] })
    await call(id, { tools: [tool('c', 'Caller’s.'), tool('a', 'Caller’s.')] })
    expect(toolNames()).toEqual(['b', 'c', 'a'])
    expect(JSON.stringify(upstreamRequest()['tools'])).not.toContain(
      '{"name":"a","description":"Agent’s."',
    )
    await call(id)
    expect(toolNames()).toEqual(['a', 'b'])
  })

  test('has the sampling of the agent as defaults', async () => {
    const id = await make({
      sampling: {
        temperature: 0,
        top_p: 0.5,
        presence_penalty: 1,
        frequency_penalty: -1,
        max_output_tokens: 77,
        reasoning_effort: 'high',
      },
    })
    await call(id)
    expect(upstreamRequest()).toMatchObject({
      temperature: 0,
      top_p: 0.5,
      presence_penalty: 1,
      frequency_penalty: -1,
      max_tokens: 77,
      reasoning_effort: 'high',
    })
    const own = { temperature: 1, top_p: 0.9, max_output_tokens: 5, reasoning: { effort: 'low' } }
    await call(id, own)
    expect(upstreamRequest()).toMatchObject({
      temperature: 1,
      top_p: 0.9,
      max_tokens: 5,
      reasoning_effort: 'low',
      presence_penalty: 1,
    })
  })

  test('has the same prefix for all callers, so that it can be cached', async () => {
    const id = await make({ instructions: 'A', tools: [tool('x', 'X'), tool('a', 'A')] })
    await call(id, { store: false })
    const first = upstream.requests.at(-1)?.body
    await call(id, { store: false }, ann)
    expect(upstream.requests.at(-1)?.body).toBe(first)
  })

  test('applies the agent in later turns and in compaction', async () => {
    const id = await make({ instructions: 'Speak like a pirate.' })
    const { id: previous } = await call(id)
    await call(id, { previous_response_id: previous, input: 'recall' })
    expect(Object(upstreamRequest()['messages'])[0].content).toBe('Speak like a pirate.')
    const json = { model: `vendor-agent-${id}`, input: 'Hi' }
    expect((await send(gateway, bob, '/v1/responses/compact', { json })).status).toBe(200)
    expect(upstreamRequest()['model']).toBe('upstream-name')
  })
})

describe('a hosted tool of an agent', () => {
  const docs = { type: 'mcp', server_label: 'docs', require_approval: 'never' }
  const outputTypes = ({ output }: JsonObject) => Object(output).map(({ type }: JsonObject) => type)
  const demo = { model: 'demo-tools', tools: [{ ...docs, allowed_tools: ['get_weather'] }] }

  test('runs for callers with access to it', async () => {
    const response = await call(await make(demo))
    expect(outputTypes(response)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
    expect(response['tools']).toEqual([])
  })

  test('does not run for callers without access', async () => {
    const id = await make(demo, bob)
    const json = { model: id, input: 'Hi' }
    const response = await send(gateway, ann, '/v1/responses', { json })
    expect(response.status).toBe(400)
    expect(Object(response.body['error'])).toMatchObject({ param: 'agent.tools[0].server_url' })
  })

  test('is replaced by a server of the request with the same label', async () => {
    const own = { ...docs, allowed_tools: ['fail'] }
    const response = await call(await make(demo), { tools: [own] })
    const [list] = Object(response['output'])
    expect(list.tools.map(({ name }: JsonObject) => name)).toEqual(['fail'])
  })
})

describe('a message', () => {
  const say = async (id: string, fields: object = {}) => {
    const json = {
      model: `vendor-agent-${id}`,
      max_tokens: 50,
      messages: [{ role: 'user', content: 'Hi' }],
      ...fields,
    }
    const { status, text, body } = await send(gateway, bob, '/compat/v1/messages', { json })
    if (status !== 200) throw new Error(text)
    return body
  }

  test('can be sent to an agent', async () => {
    const tools = [tool('a', 'Agent’s.')]
    const id = await make({ instructions: 'Speak like a pirate.', tools, sampling: { top_p: 0.5 } })
    const response = await say(id, { system: 'Be brief.' })
    expect(response).toMatchObject({ type: 'message', model: `vendor-agent-${id}` })
    expect(upstreamRequest()).toMatchObject({ model: 'upstream-name', top_p: 0.5, max_tokens: 50 })
    expect(Object(upstreamRequest()['messages'])[0].content).toBe(
      'Speak like a pirate.\n\nBe brief.',
    )
    expect(toolNames()).toEqual(['a'])
  })

  test('uses hosted tools, except those that require approval', async () => {
    const docs = { type: 'mcp', server_label: 'docs', allowed_tools: ['get_weather'] }
    const calls = () => world.server.calls.length
    const before = calls()
    const free = { ...docs, require_approval: 'never' }
    const response = await say(await make({ model: 'demo-tools', tools: [free] }))
    expect(JSON.stringify(response['content'])).toContain('The tool returned: rain in demo')
    expect(calls()).toBe(before + 1)
    const waiting = await say(await make({ model: 'demo-tools', tools: [docs] }))
    expect(waiting['stop_reason']).toBe('end_turn')
    expect(Object(waiting['content']).length).toBeGreaterThan(0)
    expect(calls()).toBe(before + 1)
  })
})

describe('an unavailable model', () => {
  test('makes its agents unavailable; they stay listed with that status', async () => {
    const id = await make()
    const row = await gateway.deps.agents.update(
      { userId: userIdOf('ann'), groups: [] },
      id,
      (agent) => ({
        ...agent,
        model: 'gone',
      }),
    )
    expect(row?.model).toBe('gone')
    const json = { model: `vendor-agent-${id}`, input: 'Hi' }
    const response = await send(gateway, bob, '/v1/responses', { json })
    expect([response.status, codeOf(response)]).toEqual([404, 'model_not_found'])
    expect(response.text).toContain(`The model of the agent \\"vendor-agent-${id}\\"`)
    expect((await send(gateway, bob, '/v1/models')).text).not.toContain(id)
    expect((await send(gateway, bob, `/v1/models/${id}`)).status).toBe(404)
    expect((await send(gateway, bob, `/v1/agents/${id}`)).body['status']).toBe('model_unavailable')
  })

  test('that does not generate text cannot be the model of an agent', async () => {
    const json = { name: 'A', model: 'embedder' }
    const response = await send(gateway, ann, '/v1/agents', { json })
    expect([response.status, codeOf(response)]).toEqual([422, 'model_not_found'])
  })
})

test('an agent is listed with the capabilities of its model', async () => {
  const id = await make({ name: 'Sailor', description: 'Sails.' })
  const { body } = await send(gateway, bob, `/v1/models/vendor-agent-${id}`)
  expect(body).toEqual({
    id: `vendor-agent-${id}`,
    object: 'model',
    created: expect.any(Number),
    owned_by: 'agent',
    name: 'Sailor',
    description: 'Sails.',
    mode: 'generate',
    capabilities: ['tools'],
    context_window: 4_096,
  })
  const { body: list } = await send(gateway, bob, '/v1/models?client_version=1')
  const shown = Object(list['models']).find(({ slug }: JsonObject) => slug === body['id'])
  expect(shown).toMatchObject({ display_name: 'Sailor', description: 'Sails.' })
})

test('a background response uses the agent as of its start', async () => {
  upstream.answer({ ending: 'silent' })
  const kept = await make({ instructions: 'Before.' })
  const deleted = await make()
  const first = await call(kept, { background: true })
  const later = await call(kept, { background: true })
  const never = await call(deleted, { background: true })
  await send(gateway, ann, `/v1/agents/${kept}`, {
    method: 'PATCH',
    json: { instructions: 'After.' },
  })
  await send(gateway, ann, `/v1/agents/${deleted}`, { method: 'DELETE' })
  upstream.answer(({ body }) => ({ body: chatAnswer(body) }))
  await send(gateway, bob, `/v1/responses/${first['id']}/cancel`, { method: 'POST' })
  const ended = async ({ id }: JsonObject) => {
    const { body } = await send(gateway, bob, `/v1/responses/${id}`)
    return body['status'] === 'queued' || body['status'] === 'in_progress' ? undefined : body
  }
  await eventually('both have ended', async () => {
    return (await ended(later)) !== undefined && (await ended(never)) !== undefined
  })
  expect(Object(upstreamRequest()['messages'])[0].content).toBe('After.')
  expect(await ended(later)).toMatchObject({ status: 'completed' })
  expect(await ended(never)).toMatchObject({
    status: 'failed',
    error: { message: `The model "vendor-agent-${deleted}" does not exist.` },
  })
})
