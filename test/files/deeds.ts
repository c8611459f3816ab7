import { expect } from 'bun:test'
import type { createDice } from '#test/support/dice.ts'
import { type FileGateway, outcome, type Person, principalOf } from '#test/support/file-gateway.ts'
import { type Oracle, type OracleNode, roleNames } from './oracle.ts'

/** What people do, by chance; each deed must end as the oracle says. */
export type Play = {
  readonly gateway: FileGateway
  readonly oracle: Oracle
  readonly people: readonly Person[]
  readonly dice: ReturnType<typeof createDice>
}

const names = ['red', 'tan', 'sky']
const groups = ['staff', 'users', 'guild']

export async function doSomething(play: Play): Promise<void> {
  const { oracle, people, dice } = play
  const person = pick(dice, people)
  const node = oracle.nodes.length === 0 ? undefined : pick(dice, oracle.nodes)
  const deed = dice.upTo(20)
  if (node === undefined || deed < 6) return make(play, person)
  if (deed < 10) return move(play, person, node)
  if (deed < 12) return copy(play, person, node)
  if (deed < 14) return remove(play, person, node)
  if (deed < 15) return restore(play, person, node)
  if (deed < 18) return share(play, person, node)
  if (deed < 19) return unshare(play, person, node)
  return deleteForEver(play, person, node)
}

function pick<T>(dice: Play['dice'], items: readonly T[]): T {
  const item = items[dice.upTo(items.length)]
  if (item === undefined) throw new Error('there is nothing to pick')
  return item
}

/** A folder, or the top. */
function pickPlace({ oracle, dice }: Play): OracleNode | null {
  const folders = oracle.nodes.filter(({ kind }) => kind === 'folder')
  return dice.upTo(4) === 0 || folders.length === 0 ? null : pick(dice, folders)
}

function pathOf({ kind, id }: OracleNode): string {
  return `/v1/${kind}s/${id}`
}

async function make(play: Play, person: Person) {
  const { gateway, oracle, dice } = play
  const parent = pickPlace(play)
  const name = pick(dice, names)
  const place = oracle.placeOf(person, parent)
  const refused = oracle.refuseIn(person, parent) ?? oracle.refuseName(place, name)
  const json = { name, folder_id: parent?.id ?? null }
  if (dice.upTo(2) === 0) {
    const answer = await gateway.send(person, '/v1/folders', { json })
    expect(outcome(answer), `${person.subject} makes a folder`).toBe(refused ?? '201')
    if (refused !== null) return
    oracle.nodes.push({
      id: String(answer.body['id']),
      kind: 'folder',
      name,
      trash: null,
      ...place,
    })
    return
  }
  const made = await gateway
    .upload(person, name, { folderId: parent?.id ?? null })
    .catch((error) => ({ refused: `${error.status} ${error.wireCode}` }))
  expect(typeof made === 'string' ? null : made.refused, `${person.subject} uploads`).toBe(refused)
  if (typeof made !== 'string') return
  oracle.nodes.push({ id: made, kind: 'file', name, trash: null, ...place })
}

async function move(play: Play, person: Person, node: OracleNode) {
  const to = pickPlace(play)
  const json = { folder_id: to?.id ?? null }
  const answer = await play.gateway.send(person, `${pathOf(node)}/move`, { json })
  const expected = play.oracle.move(person, node, to)
  expect(outcome(answer), `${person.subject} moves ${node.id} to ${to?.id}`).toBe(expected)
}

async function copy(play: Play, person: Person, node: OracleNode) {
  if (node.kind === 'folder') return
  const { gateway, oracle, dice } = play
  const parent = pickPlace(play)
  const name = pick(dice, names)
  const json = { folder_id: parent?.id ?? null, name }
  const answer = await gateway.send(person, `${pathOf(node)}/copy`, { json })
  const place = oracle.placeOf(person, parent)
  const refused =
    oracle.role(person, node) === 0
      ? '404 not_found'
      : (oracle.refuseIn(person, parent) ?? oracle.refuseName(place, name))
  expect(outcome(answer), `${person.subject} copies ${node.id}`).toBe(refused ?? '201')
  if (refused !== null) return
  oracle.nodes.push({ id: String(answer.body['id']), kind: 'file', name, trash: null, ...place })
}

async function remove({ gateway, oracle }: Play, person: Person, node: OracleNode) {
  const path = `${pathOf(node)}${node.kind === 'folder' ? '?recursive=true' : ''}`
  const answer = await gateway.send(person, path, { method: 'DELETE' })
  const expected = oracle.remove(person, node)
  expect(outcome(answer), `${person.subject} deletes ${node.id}`).toBe(expected)
}

async function restore({ gateway, oracle, dice }: Play, person: Person, node: OracleNode) {
  const trashed = oracle.nodes.filter(({ trash }) => trash !== null)
  const chosen = trashed.length === 0 ? node : pick(dice, trashed)
  const answer = await gateway.send(person, `${pathOf(chosen)}/restore`, { method: 'POST' })
  const expected = oracle.restore(person, chosen)
  expect(outcome(answer), `${person.subject} restores ${chosen.id}`).toBe(expected)
}

async function deleteForEver({ gateway, oracle }: Play, person: Person, node: OracleNode) {
  if (node.kind === 'folder') return
  const path = `${pathOf(node)}?permanent=true`
  const answer = await gateway.send(person, path, { method: 'DELETE' })
  const expected = oracle.deleteForEver(person, node)
  expect(outcome(answer), `${person.subject} destroys ${node.id}`).toBe(expected)
}

async function share({ gateway, oracle, people, dice }: Play, person: Person, node: OracleNode) {
  const principal = pick(dice, [
    ...people.map((each) => ({ type: 'user', id: principalOf(each).userId })),
    ...groups.map((id) => ({ type: 'group', id })),
    { type: 'everyone', id: '*' },
  ])
  const role = dice.upTo(3) + 1
  const known = oracle.shares.find(
    (each) => each.node === node && each.principal.id === principal.id,
  )
  const refused = oracle.refuseShare(person, node, principal)
  const json = { principal, role: roleNames[role - 1] }
  const answer = await gateway.send(person, `${pathOf(node)}/shares`, { json })
  const what = `${person.subject} shares ${node.id} with ${principal.id}`
  expect(outcome(answer), what).toBe(refused ?? (known === undefined ? '201' : '200'))
  if (refused !== null) return
  if (known === undefined)
    oracle.shares.push({ id: String(answer.body['id']), node, principal, role })
  else known.role = role
}

async function unshare({ gateway, oracle, dice }: Play, person: Person, node: OracleNode) {
  if (oracle.shares.length === 0) return
  const taken = pick(dice, oracle.shares)
  const at = dice.upTo(3) === 0 ? node : taken.node
  const path = `${pathOf(at)}/shares/${taken.id}`
  const answer = await gateway.send(person, path, { method: 'DELETE' })
  const expected = oracle.unshare(person, at, taken)
  expect(outcome(answer), `${person.subject} takes back ${taken.id}`).toBe(expected)
}
