import { expect } from 'bun:test'
import type { createDice } from '#test/support/dice.ts'
import { type FileGateway, outcome, type Person, principalOf } from '#test/support/file-gateway.ts'
import { type Oracle, type OracleNode, roleNames } from './oracle.ts'

/** Random operations, each of which must have the result that the oracle predicts. */
export type Simulation = {
  readonly gateway: FileGateway
  readonly oracle: Oracle
  readonly people: readonly Person[]
  readonly dice: ReturnType<typeof createDice>
}

const names = ['red', 'tan', 'sky']
const groups = ['staff', 'users', 'guild']

export async function performRandomOperation(simulation: Simulation): Promise<void> {
  const { oracle, people, dice } = simulation
  const person = pick(dice, people)
  const node = oracle.nodes.length === 0 ? undefined : pick(dice, oracle.nodes)
  const choice = dice.upTo(20)
  if (node === undefined || choice < 6) return create(simulation, person)
  if (choice < 10) return move(simulation, person, node)
  if (choice < 12) return copy(simulation, person, node)
  if (choice < 14) return remove(simulation, person, node)
  if (choice < 15) return restore(simulation, person, node)
  if (choice < 18) return share(simulation, person, node)
  if (choice < 19) return revoke(simulation, person, node)
  return deletePermanently(simulation, person, node)
}

function pick<T>(dice: Simulation['dice'], items: readonly T[]): T {
  const item = items[dice.upTo(items.length)]
  if (item === undefined) throw new Error('no item to pick')
  return item
}

/** Null: the top level. */
function pickFolder({ oracle, dice }: Simulation): OracleNode | null {
  const folders = oracle.nodes.filter(({ kind }) => kind === 'folder')
  return dice.upTo(4) === 0 || folders.length === 0 ? null : pick(dice, folders)
}

function pathOf({ kind, id }: OracleNode): string {
  return `/v1/${kind}s/${id}`
}

async function create(simulation: Simulation, person: Person) {
  const { gateway, oracle, dice } = simulation
  const parent = pickFolder(simulation)
  const name = pick(dice, names)
  const location = oracle.locationOf(person, parent)
  const refused = oracle.refuseIn(person, parent) ?? oracle.refuseName(location, name)
  const json = { name, folder_id: parent?.id ?? null }
  if (dice.upTo(2) === 0) {
    const response = await gateway.send(person, '/v1/folders', { json })
    expect(outcome(response), `${person.subject} makes a folder`).toBe(refused ?? '201')
    if (refused !== null) return
    oracle.nodes.push({
      id: String(response.body['id']),
      kind: 'folder',
      name,
      trash: null,
      ...location,
    })
    return
  }
  const uploaded = await gateway
    .upload(person, name, { folderId: parent?.id ?? null })
    .catch((error) => ({ refused: `${error.status} ${error.wireCode}` }))
  expect(typeof uploaded === 'string' ? null : uploaded.refused, `${person.subject} uploads`).toBe(
    refused,
  )
  if (typeof uploaded !== 'string') return
  oracle.nodes.push({ id: uploaded, kind: 'file', name, trash: null, ...location })
}

async function move(simulation: Simulation, person: Person, node: OracleNode) {
  const to = pickFolder(simulation)
  const json = { folder_id: to?.id ?? null }
  const response = await simulation.gateway.send(person, `${pathOf(node)}/move`, { json })
  const expected = simulation.oracle.move(person, node, to)
  expect(outcome(response), `${person.subject} moves ${node.id} to ${to?.id}`).toBe(expected)
}

async function copy(simulation: Simulation, person: Person, node: OracleNode) {
  if (node.kind === 'folder') return
  const { gateway, oracle, dice } = simulation
  const parent = pickFolder(simulation)
  const name = pick(dice, names)
  const json = { folder_id: parent?.id ?? null, name }
  const response = await gateway.send(person, `${pathOf(node)}/copy`, { json })
  const location = oracle.locationOf(person, parent)
  const refused =
    oracle.role(person, node) === 0
      ? '404 not_found'
      : (oracle.refuseIn(person, parent) ?? oracle.refuseName(location, name))
  expect(outcome(response), `${person.subject} copies ${node.id}`).toBe(refused ?? '201')
  if (refused !== null) return
  oracle.nodes.push({
    id: String(response.body['id']),
    kind: 'file',
    name,
    trash: null,
    ...location,
  })
}

async function remove({ gateway, oracle }: Simulation, person: Person, node: OracleNode) {
  const path = `${pathOf(node)}${node.kind === 'folder' ? '?recursive=true' : ''}`
  const response = await gateway.send(person, path, { method: 'DELETE' })
  const expected = oracle.remove(person, node)
  expect(outcome(response), `${person.subject} deletes ${node.id}`).toBe(expected)
}

async function restore({ gateway, oracle, dice }: Simulation, person: Person, node: OracleNode) {
  const trashed = oracle.nodes.filter(({ trash }) => trash !== null)
  const chosen = trashed.length === 0 ? node : pick(dice, trashed)
  const response = await gateway.send(person, `${pathOf(chosen)}/restore`, { method: 'POST' })
  const expected = oracle.restore(person, chosen)
  expect(outcome(response), `${person.subject} restores ${chosen.id}`).toBe(expected)
}

async function deletePermanently(
  { gateway, oracle }: Simulation,
  person: Person,
  node: OracleNode,
) {
  if (node.kind === 'folder') return
  const path = `${pathOf(node)}?permanent=true`
  const response = await gateway.send(person, path, { method: 'DELETE' })
  const expected = oracle.deletePermanently(person, node)
  expect(outcome(response), `${person.subject} permanently deletes ${node.id}`).toBe(expected)
}

async function share(
  { gateway, oracle, people, dice }: Simulation,
  person: Person,
  node: OracleNode,
) {
  const principal = pick(dice, [
    ...people.map((each) => ({ type: 'user', id: principalOf(each).userId })),
    ...groups.map((id) => ({ type: 'group', id })),
    { type: 'everyone', id: '*' },
  ])
  const role = dice.upTo(3) + 1
  const existing = oracle.shares.find(
    (each) => each.node === node && each.principal.id === principal.id,
  )
  const refused = oracle.refuseShare(person, node, principal)
  const json = { principal, role: roleNames[role - 1] }
  const response = await gateway.send(person, `${pathOf(node)}/shares`, { json })
  const description = `${person.subject} shares ${node.id} with ${principal.id}`
  expect(outcome(response), description).toBe(refused ?? (existing === undefined ? '201' : '200'))
  if (refused !== null) return
  if (existing === undefined)
    oracle.shares.push({ id: String(response.body['id']), node, principal, role })
  else existing.role = role
}

async function revoke({ gateway, oracle, dice }: Simulation, person: Person, node: OracleNode) {
  if (oracle.shares.length === 0) return
  const revoked = pick(dice, oracle.shares)
  const target = dice.upTo(3) === 0 ? node : revoked.node
  const path = `${pathOf(target)}/shares/${revoked.id}`
  const response = await gateway.send(person, path, { method: 'DELETE' })
  const expected = oracle.revoke(person, target, revoked)
  expect(outcome(response), `${person.subject} revokes ${revoked.id}`).toBe(expected)
}
