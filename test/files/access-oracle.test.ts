import { afterEach, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { openTestDatabase, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import {
  type FileGateway,
  type Person,
  principalOf,
  startFileGateway,
} from '#test/support/file-gateway.ts'
import { ancestors, isFor, Oracle, type OracleNode, roleNames, type Scope } from './oracle.ts'
import { performRandomOperation, type Simulation } from './random-operations.ts'

/** Random operations on trees; every result must match a simple model. */

const people: readonly Person[] = [
  { subject: 'ann', groups: ['users'] },
  { subject: 'bob', groups: ['users', 'staff'] },
  { subject: 'cy', groups: ['users', 'guild'] },
  { subject: 'dee', groups: ['users', 'staff', 'guild'] },
]
const scopes: readonly Scope[] = ['mine', 'shared_with_me', 'all']
const rounds = 2
const operationsPerRound = 45

let database: TestDatabase
let gateway: FileGateway

beforeEach(async () => {
  database = await openTestDatabase()
  gateway = await startFileGateway(database)
  // Only users who have signed in can be shared with by their id.
  for (const person of people) await gateway.send(person, '/v1/files')
})
afterEach(async () => {
  await gateway.stop()
  await database.close()
})

async function pages(person: Person, path: string, cursor: 'after' | 'cursor') {
  const items: Record<string, unknown>[] = []
  let next: unknown = null
  do {
    const from = next === null ? '' : `&${cursor}=${next}`
    const { status, body } = await gateway.send(person, `${path}${from}`)
    expect(status, path).toBe(200)
    const { data } = Object(body)
    expect(data.length).toBeLessThanOrEqual(7)
    items.push(...data)
    next = body['next'] ?? null
    expect(body['has_more']).toBe(next !== null)
  } while (next !== null)
  return items.map(({ id }) => String(id))
}

const ids = (nodes: readonly { id: string }[]) => nodes.map(({ id }) => id).toSorted()

function inOrder(nodes: readonly OracleNode[]): string[] {
  const key = ({ kind, name, id }: OracleNode) => `${kind === 'folder' ? 0 : 1} ${name} ${id}`
  return nodes.toSorted((left, right) => (key(left) < key(right) ? -1 : 1)).map(({ id }) => id)
}

async function checkLists({ oracle }: Simulation, person: Person) {
  for (const scope of scopes) {
    const readable = oracle.readable(person, scope)
    const files = readable.filter(({ kind }) => kind === 'file')
    const listed = await pages(person, `/v1/files?limit=7&scope=${scope}`, 'after')
    expect(listed, `${person.subject} lists ${scope}`).toEqual(ids(files).toReversed())
    const top = await pages(person, `/v1/files/children?limit=7&scope=${scope}`, 'cursor')
    expect(top, `${person.subject} at the top of ${scope}`).toEqual(
      inOrder(oracle.top(person, scope)),
    )
    const red = readable.filter(({ name }) => name === 'red')
    const found = await pages(person, `/v1/files/search?limit=7&q=RE&scope=${scope}`, 'cursor')
    expect(found, `${person.subject} searches ${scope}`).toEqual(inOrder(red))
  }
}

async function checkNode({ oracle }: Simulation, person: Person, node: OracleNode) {
  const path = `/v1/${node.kind}s/${node.id}`
  const { status, body } = await gateway.send(person, path)
  const role = oracle.role(person, node)
  expect(status, `${person.subject} looks at ${node.id}`).toBe(role === 0 ? 404 : 200)
  if (role === 0) {
    for (const behind of ['shares', 'access']) {
      expect((await gateway.send(person, `${path}/${behind}`)).status).toBe(404)
    }
    return
  }
  expect([body['my_role'], body['folder_id'], Object(body['owner']).id, body['shared']]).toEqual([
    roleNames[role - 1],
    oracle.readableParent(person, node)?.id ?? null,
    node.owner,
    oracle.shares.some((share) => [node, ...ancestors(node)].includes(share.node)),
  ])
  const shares = oracle.shares.filter((share) => [node, ...ancestors(node)].includes(share.node))
  const shown = role >= 3 ? shares : shares.filter((share) => isFor(share, person))
  const listed = Object((await gateway.send(person, `${path}/shares`)).body)['data']
  expect(listed.map(({ id }: { id: string }) => id).toSorted()).toEqual(ids(shown))
  if (node.kind === 'folder') await checkFolder({ oracle }, person, { node, body })
  if (role >= 3) await checkAccess({ oracle }, person, node)
}

async function checkFolder(
  { oracle }: Pick<Simulation, 'oracle'>,
  person: Person,
  { node, body }: { node: OracleNode; body: Record<string, unknown> },
) {
  const children = oracle.childrenOf(node)
  const files = children.filter(({ kind }) => kind === 'file').length
  expect(body['child_counts']).toEqual({ files, folders: children.length - files })
  const readable = ancestors(node).filter((each) => oracle.role(person, each) > 0)
  expect(body['path']).toEqual(readable.toReversed().map(({ id, name }) => ({ id, name })))
  const listed = await pages(person, `/v1/files/children?limit=7&folder_id=${node.id}`, 'cursor')
  expect(listed).toEqual(inOrder(children))
  const below = oracle.live().filter((each) => ancestors(each).includes(node))
  const path = `/v1/files/search?limit=7&q=a&folder_id=${node.id}`
  const found = await pages(person, path, 'cursor')
  expect(found.toSorted()).toEqual(ids(below.filter(({ name }) => name === 'tan')))
}

async function checkAccess(
  { oracle }: Pick<Simulation, 'oracle'>,
  person: Person,
  node: OracleNode,
) {
  for (const user of people) {
    const { userId } = principalOf(user)
    const path = `/v1/${node.kind}s/${node.id}/access?user_id=${userId}`
    const { body } = await gateway.send(person, path)
    const role = oracle.role(user, node)
    expect(body['role'], `why ${user.subject} has ${node.id}`).toBe(roleNames[role - 1] ?? null)
    const reasons: { type: string; share?: { role: string } }[] = Object(body)['via']
    const highest = reasons.map(({ type, share }) => roleNames.indexOf(share?.role ?? type) + 1)
    expect(Math.max(0, ...highest)).toBe(role)
  }
}

/** The reference implementation of the read predicate of retrieval, for all nodes at once. */
async function checkPredicate({ oracle }: Simulation, person: Person) {
  const { userId, groups } = principalOf(person)
  const rows = await database.drizzle.execute<{ id: string; role: number }>(
    sql`select node_id as id, role from node_roles(${userId}::uuid,
      string_to_array(${groups.join(',')}, ','))`,
  )
  const known = oracle.readable(person, 'all').map((node) => [node.id, oracle.role(person, node)])
  expect(rows.map(({ id, role }) => [id, role]).toSorted()).toEqual(known.toSorted())
  const everyId = oracle.nodes.map(({ id }) => id)
  const readable = await gateway.files.readable(principalOf(person), [...everyId, 'x'])
  const files = oracle.readable(person, 'all').filter(({ kind }) => kind === 'file')
  expect([...readable].toSorted()).toEqual(ids(files))
}

/** PostgreSQL takes three times as long as the embedded database. */
const seeds = serverUrl === undefined ? [1, 2, 3] : [1]

test.each(seeds)('every response is that of the evaluator, seed %d', async (seed) => {
  const simulation: Simulation = { gateway, oracle: new Oracle(), people, dice: createDice(seed) }
  for (let round = 0; round < rounds; round++) {
    for (let count = 0; count < operationsPerRound; count++)
      await performRandomOperation(simulation)
    for (const person of people) {
      await checkPredicate(simulation, person)
      await checkLists(simulation, person)
      for (const node of simulation.oracle.nodes) await checkNode(simulation, person, node)
    }
  }
})
