import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  type AgentWorld,
  admin,
  ann,
  bob,
  codeOf,
  cy,
  makeAgent,
  makeCollection,
  makeGroup,
  send,
  startAgentWorld,
} from './world.ts'

let world: AgentWorld
const collections: { id: string; name: string }[] = []
beforeAll(async () => {
  world = await startAgentWorld()
  await makeGroup(world.here, 'staff')
  for (const name of ['books', 'maps']) {
    collections.push({ id: await makeCollection(world.here, ann, name), name })
  }
})
afterAll(() => world.stop())

const whole = {
  name: '  Librarian ',
  description: 'Finds books.',
  model: 'vendor-model-demo-fast',
  instructions: 'Be brief.\u0000',
  tools: [
    { type: 'function', name: 'find', parameters: { type: 'object' }, strict: true },
    { type: 'mcp', server_label: 'docs', allowed_tools: ['search'], require_approval: 'never' },
  ],
  collections: ['books', 'books', 'maps'],
  sampling: { temperature: 0.5, max_output_tokens: 64, reasoning_effort: 'low', top_p: null },
  speech: { model: 'kokoro', voice: 'alloy', speed: 1.5 },
  visibility: { kind: 'groups', groups: ['staff', 'staff'] },
}

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

function create(json: unknown, caller = ann) {
  return send(world.here, caller, '/v1/agents', { json })
}

async function patch(id: string, json: unknown, caller = ann) {
  return send(world.there, caller, `/v1/agents/${id}`, { method: 'PATCH', json })
}

describe('an agent', () => {
  test('is returned completely to its owner, on every replica', async () => {
    const made = await create(whole)
    expect(made.status).toBe(200)
    const id = String(made.body['id'])
    expect(made.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      object: 'agent',
      model_id: `vendor-agent-${id}`,
      name: 'Librarian',
      description: 'Finds books.',
      model: 'demo-fast',
      status: 'ready',
      can_speak: true,
      is_owner: true,
      is_editable: true,
      created_at: time,
      updated_at: time,
      instructions: 'Be brief.\u0000',
      tools: [{ ...whole.tools[0], description: null }, whole.tools[1]],
      collections,
      sampling: {
        temperature: 0.5,
        top_p: null,
        top_k: null,
        presence_penalty: null,
        frequency_penalty: null,
        max_output_tokens: 64,
        reasoning_effort: 'low',
      },
      speech: { model: 'kokoro', voice: 'alloy', speed: 1.5, instructions: null },
      visibility: { kind: 'groups', groups: ['staff'] },
    })
    expect((await send(world.there, ann, `/v1/agents/${id}`)).body).toEqual(made.body)
  })

  test('does not disclose its definition to other users', async () => {
    const id = await makeAgent(world.here, ann, whole)
    const visible = (await send(world.here, bob, `/v1/agents/${id}`)).body
    expect(visible).toEqual({
      id,
      object: 'agent',
      model_id: `vendor-agent-${id}`,
      name: 'Librarian',
      description: 'Finds books.',
      model: 'demo-fast',
      status: 'ready',
      can_speak: true,
      is_owner: false,
      is_editable: false,
      created_at: time,
      updated_at: time,
    })
  })

  test('requires only a name and a model', async () => {
    const { body } = await create({ name: 'Plain', model: 'demo', description: null, tools: null })
    expect(body).toMatchObject({
      description: null,
      instructions: null,
      tools: [],
      collections: [],
      visibility: { kind: 'owner' },
    })
  })

  test('is updated field by field, and null resets a field', async () => {
    const id = await makeAgent(world.here, ann, whole)
    const before = (await send(world.here, ann, `/v1/agents/${id}`)).body
    const changed = await patch(id, { description: null, sampling: { top_p: 0.1 }, model: 'demo' })
    expect(changed.status).toBe(200)
    expect(changed.body).toEqual({
      ...before,
      description: null,
      model: 'demo',
      sampling: {
        ...Object(before['sampling']),
        temperature: null,
        top_p: 0.1,
        max_output_tokens: null,
        reasoning_effort: null,
      },
      updated_at: time,
    })
    expect((await patch(id, { visibility: null, tools: null })).body).toMatchObject({
      visibility: { kind: 'owner' },
      tools: [],
      instructions: whole.instructions,
    })
    expect((await patch(id, {})).status).toBe(200)
  })
})

describe('changing and deleting', () => {
  test('is refused for users who may only see the agent', async () => {
    const id = await makeAgent(world.here, ann, { visibility: { kind: 'everyone' } })
    const refused = await patch(id, { name: 'Mine' }, bob)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'permission_denied'])
    const path = `/v1/agents/${id}`
    const kept = await send(world.here, cy, path, { method: 'DELETE' })
    expect([kept.status, codeOf(kept)]).toEqual([403, 'permission_denied'])
    expect((await send(world.here, ann, path)).body).toMatchObject({ name: 'An agent' })
    expect((await send(world.here, ann, path, { method: 'DELETE' })).status).toBe(200)
    expect((await send(world.here, ann, path, { method: 'DELETE' })).status).toBe(404)
  })

  test('is allowed for administrators who may see the agent', async () => {
    const shared = await makeAgent(world.here, ann, { visibility: { kind: 'everyone' } })
    expect((await patch(shared, { name: 'Better' }, admin)).body).toMatchObject({
      name: 'Better',
      is_owner: false,
      is_editable: true,
      instructions: null,
    })
    const hidden = await makeAgent(world.here, ann)
    expect((await patch(hidden, { name: 'Better' }, admin)).status).toBe(404)
    const gone = await send(world.here, admin, `/v1/agents/${hidden}`, { method: 'DELETE' })
    expect(gone.status).toBe(404)
  })
})

describe('the list', () => {
  const kim = { subject: 'kim', groups: ['users'] }

  test('has pages, newest first', async () => {
    const made: string[] = []
    for (let count = 0; count < 5; count++) made.unshift(await makeAgent(world.here, kim))
    const read = async (query: string) => (await send(world.there, kim, `/v1/agents${query}`)).body
    const own = (body: Record<string, unknown>) =>
      Object(body['data'])
        .filter((agent: { is_owner: boolean }) => agent.is_owner)
        .map((agent: { id: string }) => agent.id)
    expect(own(await read('?limit=100'))).toEqual(made)
    const first = await read('?limit=2')
    expect(own(first)).toEqual(made.slice(0, 2))
    expect(first).toMatchObject({ object: 'list', has_more: true, last_id: made[1] })
    const second = await read(`?limit=3&after=${made[1]}`)
    expect(own(second)).toEqual(made.slice(2))
    expect(second).toMatchObject({ first_id: made[2], last_id: made[4] })
  })

  test.each(['limit=0', 'limit=101', 'limit=x', 'after=x'])('%s is refused', async (query) => {
    const response = await send(world.here, ann, `/v1/agents?${query}`)
    expect([response.status, codeOf(response)]).toEqual([422, 'unprocessable'])
  })
})

test('a user may have 200 agents, also with concurrent requests', async () => {
  const max = { subject: 'max', groups: ['users'] }
  for (let count = 0; count < 195; count++) await makeAgent(world.here, max)
  const responses = await Promise.all(
    Array.from({ length: 12 }, (_, index) => {
      const at = index % 2 === 0 ? world.here : world.there
      return send(at, max, '/v1/agents', { json: { name: 'A', model: 'demo' } })
    }),
  )
  const refused = responses.filter(({ status }) => status !== 200)
  expect(refused.map((response) => [response.status, codeOf(response)])).toEqual(
    Array(7).fill([422, 'too_many_agents']),
  )
  await makeAgent(world.here, ann)
})

test('concurrent changes are applied one after the other', async () => {
  const id = await makeAgent(world.here, ann)
  const fields = ['description', 'instructions', 'name']
  const responses = await Promise.all(
    fields.map((field, index) =>
      send(index % 2 === 0 ? world.here : world.there, ann, `/v1/agents/${id}`, {
        method: 'PATCH',
        json: { [field]: 'changed' },
      }),
    ),
  )
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await send(world.here, ann, `/v1/agents/${id}`)).body).toMatchObject({
    description: 'changed',
    instructions: 'changed',
    name: 'changed',
  })
})
