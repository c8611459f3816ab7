import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** What names a group: shares of files, folders and collections, and the visibility of agents. */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

type Answer = { status: number; body: Record<string, unknown> }

async function send(
  who: [subject: string, ...groups: string[]],
  how: string,
  json?: object,
): Promise<Answer> {
  const [method = '', path = ''] = how.split(' ')
  const [subject, ...groups] = who
  const response = await gateway.request(path, {
    method,
    headers: {
      authorization: `Bearer ${await gateway.token([...groups, 'users'], subject)}`,
      'content-type': 'application/json',
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  return { status: response.status, body: Object(await response.json()) }
}

const root: [string, string] = ['root', 'admins']
const ann: [string] = ['ann']

/** A folder, a collection and an agent of ann that the group sees; their paths. */
async function shareAll(group: string): Promise<readonly string[]> {
  const folder = await send(ann, 'POST /v1/folders', { name: `folder of ${group}` })
  const collection = await send(ann, 'POST /v1/collections', { name: `of-${group}` })
  const agent = await send(ann, 'POST /v1/agents', {
    name: 'an agent',
    model: 'demo',
    visibility: { kind: 'groups', groups: [group] },
  })
  const paths = [`/v1/folders/${folder.body['id']}`, `/v1/collections/${collection.body['id']}`]
  for (const path of paths) {
    const share = { principal: { type: 'group', id: group }, role: 'viewer' }
    expect((await send(ann, `POST ${path}/shares`, share)).status).toBe(201)
  }
  return [...paths, `/v1/agents/${agent.body['id']}`]
}

async function addMember(group: string, subject: string): Promise<void> {
  const { body } = await send([subject], 'GET /v1/me')
  const { id } = Object(body['user'] ?? body)
  const added = await send(root, `PUT /v1/groups/${group}/members/${id}`)
  expect(added.status).toBeLessThan(300)
}

const statuses = (who: [string, ...string[]], paths: readonly string[]) =>
  Promise.all(paths.map(async (path) => (await send(who, `GET ${path}`)).status))

test('a group that is made anew after its deletion inherits nothing', async () => {
  await send(root, 'POST /v1/groups', { name: 'crew' })
  await addMember('crew', 'carl')
  const paths = await shareAll('crew')
  expect(await statuses(['carl'], paths)).toEqual([200, 200, 200])

  expect((await send(root, 'DELETE /v1/groups/crew')).status).toBe(200)
  expect((await send(root, 'POST /v1/groups', { name: 'crew' })).status).toBeLessThan(300)
  await addMember('crew', 'dora')
  for (const subject of ['carl', 'dora'])
    expect(await statuses([subject], paths)).toEqual([404, 404, 404])
  // Nor does somebody whose token names the group.
  expect(await statuses(['eve', 'crew'], paths)).toEqual([404, 404, 404])
  expect(await statuses(ann, paths)).toEqual([200, 200, 200])
  const agent = await send(ann, `GET ${paths[2]}`)
  expect(agent.body['visibility']).toMatchObject({ kind: 'owner' })
})

describe('a group of tokens that becomes a group of the platform', () => {
  test('keeps its shares for the same people', async () => {
    await send(['finn', 'sailors'], 'GET /v1/me')
    const paths = await shareAll('sailors')
    await send(root, 'POST /v1/groups', { name: 'sailors' })
    expect(await statuses(['finn', 'sailors'], paths)).toEqual([200, 200, 200])
  })

  test('gives them to nobody else', async () => {
    await send(['finn', 'pilots'], 'GET /v1/me')
    const paths = await shareAll('pilots')
    await send(root, 'POST /v1/groups', { name: 'pilots', idp_claim: 'other-people' })
    expect(await statuses(['gus', 'other-people'], paths)).toEqual([404, 404, 404])
  })
})

test('a share with a group that nobody knows is refused', async () => {
  const folder = await send(ann, 'POST /v1/folders', { name: 'lonely' })
  const collection = await send(ann, 'POST /v1/collections', { name: 'lonely' })
  for (const path of [
    `/v1/folders/${folder.body['id']}`,
    `/v1/collections/${collection.body['id']}`,
  ]) {
    const share = { principal: { type: 'group', id: 'nobody-knows' }, role: 'viewer' }
    expect(await send(ann, `POST ${path}/shares`, share)).toMatchObject({
      status: 422,
      body: { error: { code: 'principal_not_found', param: 'principal.id' } },
    })
  }
})
