import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import type { Gateway } from '#test/support/gateway.ts'
import {
  type AgentWorld,
  admin,
  ann,
  bob,
  type Caller,
  cy,
  makeAgent,
  makeGroup,
  send,
  startAgentWorld,
} from './world.ts'

let world: AgentWorld
beforeAll(async () => {
  world = await startAgentWorld()
  for (const name of ['staff', 'x', 'nobody', 'cy']) await makeGroup(world.here, name)
})
afterAll(() => world.stop())

/** Whether a user finds an agent through each endpoint. */
const ways: Record<string, (at: Gateway, caller: Caller, id: string) => Promise<boolean>> = {
  'the list of agents': async (at, caller, id) =>
    listed(await send(at, caller, '/v1/agents?limit=100'), id),
  'the agent itself': async (at, caller, id) => found(await send(at, caller, `/v1/agents/${id}`)),
  'the list of models': async (at, caller, id) =>
    listed(await send(at, caller, '/v1/models'), `vendor-agent-${id}`),
  'the list of coding clients': async (at, caller, id) => {
    const { body } = await send(at, caller, '/v1/models?client_version=1')
    return JSON.stringify(body['models']).includes(`vendor-agent-${id}`)
  },
  'the model itself': async (at, caller, id) =>
    found(await send(at, caller, `/v1/models/vendor-agent-${id}`)),
  'the list under /compat': async (at, caller, id) =>
    listed(await send(at, caller, '/compat/v1/models?limit=1000'), `vendor-agent-${id}`),
  'the model itself under /compat': async (at, caller, id) =>
    found(await send(at, caller, `/compat/v1/models/vendor-agent-${id}`)),
  'a call': async (at, caller, id) =>
    found(await call(at, caller, { model: `vendor-agent-${id}`, store: false })),
  'a call by the bare id': async (at, caller, id) =>
    found(await call(at, caller, { model: id, store: false })),
  'a call in the background': async (at, caller, id) =>
    found(await call(at, caller, { model: `vendor-agent-${id}`, background: true })),
  'a count of tokens': async (at, caller, id) => {
    const json = { model: `vendor-agent-${id}`, input: 'Hi' }
    return found(await send(at, caller, '/v1/responses/input_tokens', { json }))
  },
  'a message': async (at, caller, id) =>
    found(await say(at, caller, { model: `vendor-agent-${id}`, max_tokens: 16 })),
  'a message by the bare id': async (at, caller, id) =>
    found(await say(at, caller, { model: id, max_tokens: 16 })),
  'a count of the tokens of a message': async (at, caller, id) =>
    found(await say(at, caller, { model: `vendor-agent-${id}` }, '/count_tokens')),
}

function say(at: Gateway, caller: Caller, body: object, path = '') {
  const json = { messages: [{ role: 'user', content: 'Hi' }], ...body }
  return send(at, caller, `/compat/v1/messages${path}`, { json })
}

function call(at: Gateway, caller: Caller, body: object) {
  return send(at, caller, '/v1/responses', { json: { input: 'Hi', ...body } })
}

function listed({ body }: { body: Record<string, unknown> }, id: string): boolean {
  const { data } = body
  if (!Array.isArray(data)) throw new Error('that is no list')
  return data.some((entry) => entry.id === id)
}

function found({ status, text }: { status: number; text: string }): boolean {
  if (status === 200 || status === 404) return status === 200
  throw new Error(text)
}

/** Checks every endpoint for every user on both replicas. */
async function expectSeen(id: string, expected: Map<Caller, boolean>): Promise<void> {
  for (const [caller, isSeen] of expected) {
    for (const [name, at] of Object.entries({ here: world.here, there: world.there })) {
      for (const [way, look] of Object.entries(ways)) {
        const what = `${caller.subject}, ${way}, ${name}: ${isSeen}`
        // The cache of the other replica waits for a notification.
        await eventually(what, async () => (await look(at, caller, id)) === isSeen)
      }
    }
  }
}

const everyone = [ann, bob, cy, admin]
const visibleTo = (...callers: Caller[]) =>
  new Map(everyone.map((caller) => [caller, callers.includes(caller)]))

const table: [string, object | undefined, Map<Caller, boolean>][] = [
  ['the owner by default', undefined, visibleTo(ann)],
  ['its owner', { kind: 'owner' }, visibleTo(ann)],
  ['a group', { kind: 'groups', groups: ['staff'] }, visibleTo(ann, bob)],
  [
    'several groups',
    { kind: 'groups', groups: ['staff', 'admins', 'x'] },
    visibleTo(ann, bob, admin),
  ],
  ['an empty group', { kind: 'groups', groups: ['nobody'] }, visibleTo(ann)],
  ['no group at all', { kind: 'groups', groups: [] }, visibleTo(ann)],
  ['a user', { kind: 'users', users: ['cy'] }, visibleTo(ann, cy)],
  ['users', { kind: 'users', users: ['bob', 'cy', 'staff'] }, visibleTo(ann, bob, cy)],
  ['a user called as a group', { kind: 'users', users: ['users'] }, visibleTo(ann)],
  ['a group called as a user', { kind: 'groups', groups: ['cy'] }, visibleTo(ann)],
  ['everyone', { kind: 'everyone' }, visibleTo(...everyone)],
]

test.each(table)('an agent for %s', async (_audience, visibility, expected) => {
  await expectSeen(await makeAgent(world.here, ann, { visibility }), expected)
})

describe('changes of access take effect on every replica', () => {
  const change = (id: string, visibility: object) =>
    send(world.here, ann, `/v1/agents/${id}`, { method: 'PATCH', json: { visibility } })

  test.each([
    [{ kind: 'everyone' }, { kind: 'owner' }],
    [
      { kind: 'groups', groups: ['staff', 'users', 'admins'] },
      { kind: 'groups', groups: ['x'] },
    ],
    [
      { kind: 'users', users: ['bob', 'cy', 'dora'] },
      { kind: 'users', users: [] },
    ],
  ])('unsharing from %p to %p, and sharing again', async (shared, unshared) => {
    const id = await makeAgent(world.there, ann, { visibility: shared })
    await expectSeen(id, visibleTo(...everyone))
    expect((await change(id, unshared)).status).toBe(200)
    await expectSeen(id, visibleTo(ann))
    expect((await change(id, shared)).status).toBe(200)
    await expectSeen(id, visibleTo(...everyone))
  })

  test('deletion', async () => {
    const id = await makeAgent(world.here, ann, { visibility: { kind: 'everyone' } })
    await expectSeen(id, visibleTo(...everyone))
    expect((await send(world.there, ann, `/v1/agents/${id}`, { method: 'DELETE' })).body).toEqual({
      id,
      object: 'agent.deleted',
      deleted: true,
    })
    await expectSeen(id, visibleTo())
  })

  test('leaving a group', async () => {
    const id = await makeAgent(world.here, ann, {
      visibility: { kind: 'groups', groups: ['staff'] },
    })
    const former: Caller = { subject: 'bob', groups: ['users'] }
    await expectSeen(id, new Map([[former, false]]))
  })
})

test('deleted, hidden, malformed and unknown ids have the same response', async () => {
  const hidden = await makeAgent(world.here, ann)
  const deleted = await makeAgent(world.here, bob, { visibility: { kind: 'everyone' } })
  await send(world.here, bob, `/v1/agents/${deleted}`, { method: 'DELETE' })
  const absent = Bun.randomUUIDv7()
  const paths = ['/v1/agents/ID', '/v1/models/vendor-agent-ID', '/compat/v1/models/vendor-agent-ID']
  const message = { model: 'vendor-agent-ID', messages: [{ role: 'user', content: 'Hi' }] }
  const requests: [string, { json?: unknown; method?: string }][] = [
    ...paths.map((path): [string, object] => [path, {}]),
    ['/v1/agents/ID', { method: 'PATCH', json: { name: 'Mine' } }],
    ['/v1/agents/ID', { method: 'DELETE' }],
    ['/v1/responses', { json: { model: 'vendor-agent-ID', input: 'Hi' } }],
    ['/v1/responses', { json: { model: 'vendor-agent-ID', input: 'Hi', background: true } }],
    ['/v1/responses/compact', { json: { model: 'vendor-agent-ID', input: 'Hi' } }],
    ['/compat/v1/messages', { json: { ...message, max_tokens: 5 } }],
    ['/compat/v1/messages/count_tokens', { json: message }],
  ]
  for (const [path, { json, method }] of requests) {
    const responses = await Promise.all(
      [hidden, deleted, absent].map(async (id) => {
        const own = json === undefined ? {} : { json: JSON.stringify(json).replace('ID', id) }
        const way = { ...own, ...(method === undefined ? {} : { method }) }
        const { status, text } = await send(world.there, bob, path.replace('ID', id), way)
        return `${status} ${text.replaceAll(id, 'ID').replaceAll(/req_\w+/g, 'REQUEST')}`
      }),
    )
    expect(new Set(responses).size, `${method} ${path}: ${responses}`).toBe(1)
    expect(responses[0]).toStartWith('404 ')
  }
})
