import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type AgentWorld, ann, bob, codeOf, makeAgent, send, startAgentWorld } from './world.ts'

let world: AgentWorld
beforeAll(async () => {
  world = await startAgentWorld()
})
afterAll(() => world.stop())

function create(json: unknown) {
  return send(world.here, ann, '/v1/agents', { json })
}

function patch(id: string, json: unknown, caller = ann) {
  return send(world.there, caller, `/v1/agents/${id}`, { method: 'PATCH', json })
}

describe('a body', () => {
  const long = (length: number) => 'x'.repeat(length)
  const tool = (name: string, rest: object = {}) => ({ type: 'function', name, ...rest })
  const faults: [string, object, string, string][] = [
    ['an unknown field', { colour: 'red' }, 'unknown_field', 'colour'],
    ['an unknown field that is null', { colour: null }, 'unknown_field', 'colour'],
    ['no name', { name: null }, 'unprocessable', 'name'],
    ['an empty name', { name: ' ' }, 'unprocessable', 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'unprocessable', 'name'],
    ['half a character', { name: '\ud800' }, 'unprocessable', 'name'],
    ['a long name', { name: long(101) }, 'unprocessable', 'name'],
    ['a name that is a number', { name: 5 }, 'unprocessable', 'name'],
    ['no model', { model: null }, 'unprocessable', 'model'],
    ['an unknown model', { model: 'nope' }, 'model_not_found', 'model'],
    ['an agent as the model', { model: 'AGENT' }, 'model_not_found', 'model'],
    ['a long description', { description: long(1_001) }, 'unprocessable', 'description'],
    ['long instructions', { instructions: long(100_001) }, 'unprocessable', 'instructions'],
    ['tools that are no array', { tools: {} }, 'unprocessable', 'tools'],
    ['a tool that is a text', { tools: ['x'] }, 'unprocessable', 'tools[0]'],
    ['a tool of no type', { tools: [{}] }, 'unprocessable', 'tools[0].type'],
    ['a tool of another type', { tools: [{ type: 'web' }] }, 'unprocessable', 'tools[0].type'],
    ['a tool without a name', { tools: [{ type: 'function' }] }, 'unprocessable', 'tools[0].name'],
    ['a tool with a bad name', { tools: [tool('a b')] }, 'unprocessable', 'tools[0].name'],
    ['a tool twice', { tools: [tool('a'), tool('a')] }, 'unprocessable', 'tools[1]'],
    ['an unknown field of a tool', { tools: [tool('a', { x: 1 })] }, 'unknown_field', 'tools[0].x'],
    [
      'a server by its URL',
      { tools: [{ type: 'mcp', server_label: 'docs', server_url: 'http://x' }] },
      'unknown_field',
      'tools[0].server_url',
    ],
    ['many tools', { tools: Array.from({ length: 129 }, () => ({})) }, 'unprocessable', 'tools'],
    [
      'much schema',
      { tools: [tool('a', { parameters: { x: long(262_144) } })] },
      'unprocessable',
      'tools',
    ],
    ['many collections', { collections: Array(33).fill('a') }, 'unprocessable', 'collections'],
    ['a collection of two lines', { collections: ['a\nb'] }, 'unprocessable', 'collections[0]'],
    ['heat', { sampling: { temperature: 3 } }, 'unprocessable', 'sampling.temperature'],
    [
      'half a token',
      { sampling: { max_output_tokens: 1.5 } },
      'unprocessable',
      'sampling.max_output_tokens',
    ],
    [
      'another effort',
      { sampling: { reasoning_effort: 'huge' } },
      'unprocessable',
      'sampling.reasoning_effort',
    ],
    ['an unknown default', { sampling: { seed: 1 } }, 'unknown_field', 'sampling.seed'],
    ['no voice', { speech: { model: 'kokoro' } }, 'unprocessable', 'speech.voice'],
    [
      'an impossible speed',
      { speech: { model: 'kokoro', voice: 'alloy', speed: 9 } },
      'unprocessable',
      'speech.speed',
    ],
    ['no kind', { visibility: {} }, 'unprocessable', 'visibility.kind'],
    ['another kind', { visibility: { kind: 'world' } }, 'unprocessable', 'visibility.kind'],
    ['no groups', { visibility: { kind: 'groups' } }, 'unprocessable', 'visibility.groups'],
    [
      'users with groups',
      { visibility: { kind: 'groups', groups: ['a'], users: ['b'] } },
      'unprocessable',
      'visibility.users',
    ],
    [
      'groups for everyone',
      { visibility: { kind: 'everyone', groups: [] } },
      'unprocessable',
      'visibility.groups',
    ],
    [
      'an empty group',
      { visibility: { kind: 'groups', groups: [''] } },
      'unprocessable',
      'visibility.groups[0]',
    ],
    [
      'many users',
      { visibility: { kind: 'users', users: Array(101).fill('a') } },
      'unprocessable',
      'visibility.users',
    ],
  ]

  test.each(faults)(
    'with %s is refused and changes nothing',
    async (_description, fields, code, param) => {
      const id = await makeAgent(world.here, ann)
      const text = JSON.stringify(fields).replace('AGENT', `vendor-agent-${id}`)
      const parsed: object = JSON.parse(text)
      const responses = [
        await create({ name: 'A', model: 'demo', ...parsed }),
        await patch(id, text),
      ]
      for (const response of responses) {
        const { status, body } = response
        expect([status, codeOf(response), Object(body['error']).param]).toEqual([422, code, param])
      }
      const { body } = await send(world.here, ann, `/v1/agents/${id}`)
      expect(body['updated_at']).toBe(body['created_at'])
    },
  )

  test.each(['[]', '"x"', 'null', '7'])('%s is refused', async (text) => {
    expect((await create(text)).status).toBe(422)
  })

  test('malformed JSON is refused', async () => {
    const response = await create('{')
    expect([response.status, codeOf(response)]).toEqual([400, 'malformed_json'])
  })

  test('is not validated if the agent is not visible', async () => {
    const id = await makeAgent(world.here, ann)
    expect((await patch(id, { colour: 'red' }, bob)).status).toBe(404)
  })
})
