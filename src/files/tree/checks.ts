import type { Transaction } from '#db/client.ts'
import { isAtLeast, type OnConflict, type Role } from '#files/files.ts'
import { nameKey, numberedName } from '#files/names.ts'
import { type IsExpected, requireExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  countNodes,
  depthOf,
  findNode,
  findTaken,
  type NodeRef,
  type TreeLocation,
  type TreeNode,
} from './store.ts'

const folderDepthMax = 32
const numbersPerQuery = 100
const numbersMax = 10_000

export type NodeKind = 'file' | 'folder'

/** Nodes that the principal may not read do not exist for them. */
export function nodeNotFound(kind: NodeKind, id: string, param = 'id'): AppError {
  return new AppError('not_found', `There is no ${kind} with the id "${id}".`, { param })
}

/** The canonical form of an id; throws `not_found` for a malformed one. */
export function parseNodeId(kind: NodeKind, id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw nodeNotFound(kind, id)
}

/** Throws `not_found`, or `permission_denied` for a node that the principal may only read. */
export function requireNode(
  node: TreeNode | undefined,
  required: { kind: NodeKind; id: string; role: Role; param?: string },
): TreeNode {
  if (node === undefined || node.kind !== required.kind) {
    throw nodeNotFound(required.kind, required.id, required.param)
  }
  requireRole(node.role, required.role, required.kind)
  return node
}

export function requireRole(role: Role, required: Role, resource: string): void {
  if (isAtLeast(role, required)) return
  throw new AppError('permission_denied', `This requires the role ${required} on the ${resource}.`)
}

/** Throws `precondition_failed`. */
export function requireVersion(
  { version }: Pick<TreeNode, 'version'>,
  ifVersion: IsExpected | null,
): void {
  if (ifVersion === null) return
  requireExpected(ifVersion, String(version), `The current version is "${version}".`)
}

/** A folder that the principal may edit; null is the top level of their own tree. */
export async function findDestination(
  transaction: Transaction,
  principal: RequestPrincipal,
  folderId: string | null,
): Promise<TreeLocation & { depth: number }> {
  if (folderId === null) return { ownerId: principal.userId, parentId: null, depth: 0 }
  const required = { kind: 'folder', id: folderId, role: 'editor', param: 'folder_id' } as const
  const folder = requireNode(await findNode(transaction, principal, folderId), required)
  const depth = await depthOf(transaction, folderId)
  return { ownerId: folder.ownerId, parentId: folderId, depth }
}

/** Throws `folder_too_deep`. The `height` of a file is 0. */
export function requireDepth({ depth }: { depth: number }, height: number): void {
  if (height === 0 || depth + height <= folderDepthMax) return
  throw new AppError('unprocessable', `Folders may be nested at most ${folderDepthMax} deep.`, {
    param: 'folder_id',
    code: 'folder_too_deep',
  })
}

/** Throws `too_many_files`. */
export async function requireNodeQuota(
  transaction: Transaction,
  { ownerId }: TreeLocation,
  { added, perOwnerMax }: { added: number; perOwnerMax: number },
): Promise<void> {
  if ((await countNodes(transaction, ownerId)) + added <= perOwnerMax) return
  throw new AppError(
    'unprocessable',
    `The owner of the folder has ${perOwnerMax} files and folders, which is the limit.`,
    { code: 'too_many_files' },
  )
}

/** The node that has this name, except `exceptId`. */
export async function findNamed(
  transaction: Transaction,
  location: TreeLocation,
  name: string,
  exceptId: string | null,
): Promise<NodeRef | undefined> {
  const taken = await findTaken(transaction, location, [nameKey(name)])
  return taken.find(({ id }) => id !== exceptId)
}

/** The name if it is free, or with `rename` the first free name with a number. */
export async function freeName(
  transaction: Transaction,
  location: TreeLocation,
  { name, onConflict, exceptId }: { name: string; onConflict: OnConflict; exceptId: string | null },
): Promise<string> {
  if ((await findNamed(transaction, location, name, exceptId)) === undefined) return name
  if (onConflict !== 'rename') throw nameConflict(name)
  for (let first = 2; first < numbersMax; first += numbersPerQuery) {
    const names = Array.from({ length: numbersPerQuery }, (_, index) =>
      numberedName(name, first + index),
    )
    const taken = await findTaken(transaction, location, names.map(nameKey))
    const keys = new Set(taken.filter(({ id }) => id !== exceptId).map(({ key }) => key))
    const free = names.find((candidate) => !keys.has(nameKey(candidate)))
    if (free !== undefined) return free
  }
  throw nameConflict(name)
}

export function nameConflict(name: string): AppError {
  return new AppError('conflict', `The name "${name}" is already taken in this folder.`, {
    param: 'name',
    code: 'name_conflict',
  })
}
