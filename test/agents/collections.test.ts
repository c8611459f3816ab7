import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import {
  type AgentWorld,
  admin,
  ann,
  bob,
  type Caller,
  codeOf,
  makeAgent,
  makeCollection,
  makeGroup,
  send,
  startAgentWorld,
} from './world.ts'

/** Agents hold ids of collections and known groups, so nothing that comes later takes a name over. */

let world: AgentWorld
beforeAll(async () => {
  world = await startAgentWorld()
})
afterAll(() => world.stop())

async function collectionsOf(id: string, caller = ann): Promise<unknown> {
  return (await send(world.there, caller, `/v1/agents/${id}`)).body['collections']
}

async function share(owner: Caller, id: string): Promise<void> {
  const json = { principal: { type: 'everyone' }, role: 'viewer' }
  expect((await send(world.here, owner, `/v1/collections/${id}/shares`, { json })).status).toBe(201)
}

function remove(owner: Caller, id: string, query = '') {
  return send(world.here, owner, `/v1/collections/${id}${query}`, { method: 'DELETE' })
}

const post = (collections: unknown, caller = ann) =>
  send(world.here, caller, '/v1/agents', { json: { name: 'A', model: 'demo', collections } })

describe('collections', () => {
  test('named by name, owner or id become ids once, and the response has both', async () => {
    const id = await makeCollection(world.here, ann, 'contracts')
    const made = await post(['contracts', `${ann.subject}/contracts`, id, id.toUpperCase()])
    expect(made.body['collections']).toEqual([{ id, name: 'contracts' }])
    await send(world.here, ann, `/v1/collections/${id}`, {
      method: 'PATCH',
      json: { name: 'agreements' },
    })
    expect(await collectionsOf(String(made.body['id']))).toEqual([{ id, name: 'agreements' }])
  })

  test('of a response can be sent back', async () => {
    const id = await makeCollection(world.here, ann, 'returned')
    const made = await post([id])
    const path = `/v1/agents/${made.body['id']}`
    const json = { collections: made.body['collections'] }
    const changed = await send(world.here, ann, path, { method: 'PATCH', json })
    expect(changed.body['collections']).toEqual([{ id, name: 'returned' }])
  })

  test.each(['nothing', Bun.randomUUIDv7(), 'bob/nothing'])(
    '%s is refused as unknown, like one that is hidden',
    async (unknown) => {
      const hidden = await makeCollection(world.here, bob, `hidden-${Bun.randomUUIDv7()}`)
      for (const reference of [unknown, hidden]) {
        const refused = await post([reference])
        expect([refused.status, codeOf(refused)]).toEqual([422, 'collection_not_found'])
        expect(Object(refused.body['error']).param).toBe('collections[0]')
      }
    },
  )

  test('of an ambiguous name are refused with their ids', async () => {
    const ids = [
      await makeCollection(world.here, bob, 'twice'),
      await makeCollection(world.here, admin, 'twice'),
    ]
    await share(bob, ids[0] ?? '')
    await share(admin, ids[1] ?? '')
    const refused = await post(['nothing', 'twice'])
    expect([refused.status, codeOf(refused)]).toEqual([422, 'ambiguous_name'])
    const { message, param } = Object(refused.body['error'])
    expect(param).toBe('collections[1]')
    for (const id of ids) expect(message).toContain(id)
  })

  test('that were deleted are not replaced by new ones of the same name', async () => {
    const old = await makeCollection(world.here, ann, 'press')
    const agent = await makeAgent(world.here, ann, { collections: ['press'] })
    expect(codeOf(await remove(ann, old))).toBe('collection_in_use')
    expect((await remove(ann, old, '?force=true')).status).toBe(200)
    for (const owner of [ann, bob])
      await share(owner, await makeCollection(world.here, owner, 'press'))
    expect(await collectionsOf(agent)).toEqual([{ id: old, name: null }])
    // The same list can be saved again.
    const json = { name: 'B', collections: [{ id: old, name: null }] }
    const saved = await send(world.here, ann, `/v1/agents/${agent}`, { method: 'PATCH', json })
    expect(saved.body['collections']).toEqual(json.collections)
  })

  test('that the editor does not see have no name', async () => {
    const id = await makeCollection(world.here, ann, 'private')
    const agent = await makeAgent(world.here, ann, {
      collections: [id],
      visibility: { kind: 'everyone' },
    })
    expect(await collectionsOf(agent, admin)).toEqual([{ id, name: null }])
  })
})

describe('the previous version', () => {
  /** Writes a definition as that version does; returns the ids that the database derives from it. */
  async function write(
    collections: unknown[],
    { at = new Date(), instructions = 'a\u0000b' }: { at?: Date; instructions?: string } = {},
  ): Promise<readonly string[]> {
    const definition = JSON.stringify({ name: 'Old', instructions, collections, sampling: {} })
    const [row] = await world.database.drizzle.execute<{ ids: string }>(sql`
      insert into agent (id, owner_id, definition, visibility, groups, user_ids, created_at, updated_at)
      values (${Bun.randomUUIDv7()}::uuid, ${userIdOf(ann.subject)}::uuid, ${definition}, 'owner',
        '{}', '{}', ${at.toISOString()}::timestamptz, ${at.toISOString()}::timestamptz)
      returning array_to_json(collection_ids)::text as ids`)
    return JSON.parse(row?.ids ?? '')
  }

  test('may store names, which become ids of collections that the owner sees', async () => {
    const own = await makeCollection(world.here, ann, 'old-own')
    const shared = await makeCollection(world.here, bob, 'old-shared')
    await makeCollection(world.here, bob, 'old-hidden')
    await share(bob, shared)
    const names = ['old-shared', 'old-own', own, 'old-hidden', 'old-nothing']
    expect(await write(names)).toEqual([shared, own])
  })

  test("names no stranger's collection that is younger than the agent", async () => {
    const shared = await makeCollection(world.here, bob, 'young')
    await share(bob, shared)
    const before = new Date(Date.now() - 3_600_000)
    expect(await write(['young'], { at: before })).toEqual([])
    expect(await write(['young'])).toEqual([shared])
  })

  test.each(['\u0000', '\\u0000', '\\\u0000\\\\u0000', '"\\', '\\'])(
    'may store any instructions: %j',
    async (instructions) => {
      const id = Bun.randomUUIDv7()
      expect(await write([id], { instructions })).toEqual([id])
    },
  )
})

describe('groups of the visibility', () => {
  const groups = (...names: string[]) => ({ visibility: { kind: 'groups', groups: names } })

  test('that nobody knows are refused, in creation and in a change', async () => {
    await makeGroup(world.here, 'editors')
    const json = { name: 'A', model: 'demo', ...groups('editors', 'later') }
    const refused = await send(world.here, ann, '/v1/agents', { json })
    expect([refused.status, codeOf(refused)]).toEqual([422, 'principal_not_found'])
    expect(Object(refused.body['error']).param).toBe('visibility.groups[1]')
    const path = `/v1/agents/${await makeAgent(world.here, ann, groups('editors'))}`
    const change = { method: 'PATCH', json: groups('editors', 'later') }
    expect(codeOf(await send(world.here, ann, path, change))).toBe('principal_not_found')
    expect((await send(world.here, ann, path)).body).toMatchObject(groups('editors'))
  })

  test('of tokens are known, those of the caller at once', async () => {
    const zoe: Caller = { subject: 'zoe', groups: ['users', 'zoologists'] }
    const path = `/v1/agents/${await makeAgent(world.here, zoe, groups('zoologists'))}`
    expect((await send(world.here, zoe, path)).body).toMatchObject(groups('zoologists'))
    await makeAgent(world.there, ann, groups('zoologists'))
  })

  test('inherit nothing when they are made anew, also while an agent is shared', async () => {
    for (let round = 0; round < 8; round++) {
      const name = `crew-${round}`
      await makeGroup(world.here, name)
      const json = { name: 'A', model: 'demo', ...groups(name) }
      const [added] = await Promise.all([
        send(world.there, ann, '/v1/agents', { json }),
        send(world.here, admin, `/v1/groups/${name}`, { method: 'DELETE' }),
      ])
      if (added.status !== 200) {
        expect(codeOf(added)).toBe('principal_not_found')
        continue
      }
      await makeGroup(world.here, name)
      const member: Caller = { subject: 'mia', groups: ['users', name] }
      const path = `/v1/agents/${added.body['id']}`
      expect((await send(world.here, ann, path)).body['visibility']).toEqual({ kind: 'owner' })
      expect((await send(world.here, member, path)).status).toBe(404)
    }
  })
})
