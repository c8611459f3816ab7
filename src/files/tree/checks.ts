import type { OnConflict, Role } from '#files/files.ts'
import { nameKey, numberedName } from '#files/names.ts'
import { isAtLeast } from '#files/roles.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import {
  countNodes,
  depthOf,
  findNode,
  findTaken,
  type NodeRef,
  type TreeLocation,
  type TreeNode,
} from './store.ts'

/** Folders in folders. */
const depthMax = 32
const numbersPerQuestion = 100
const numbersMax = 10_000

export type NodeKind = 'file' | 'folder'

/** What the caller may not read is not found, whatever they wanted to do with it. */
export function nodeNotFound(kind: NodeKind, id: string, param = 'id'): AppError {
  return new AppError('not_found', `There is no ${kind} with the id "${id}".`, { param })
}

/** Throws `not_found`, or `permission_denied` for what the caller may read and no more. */
export function requireNode(
  found: TreeNode | undefined,
  wanted: { kind: NodeKind; id: string; role: Role; param?: string },
): TreeNode {
  if (found === undefined || found.kind !== wanted.kind) {
    throw nodeNotFound(wanted.kind, wanted.id, wanted.param)
  }
  requireRole(found.role, wanted.role, wanted.kind)
  return found
}

export function requireRole(held: Role, wanted: Role, what: string): void {
  if (isAtLeast(held, wanted)) return
  throw new AppError('permission_denied', `This takes the role ${wanted} on the ${what}.`)
}

/** Throws `precondition_failed` where a change is not meant for the version that the node has. */
export function requireVersion(
  { version }: Pick<TreeNode, 'version'>,
  ifVersion: IsExpected | null,
): void {
  if (ifVersion === null || ifVersion(String(version))) return
  throw new AppError('precondition_failed', `The version is now "${version}".`)
}

/** Where the caller may put something: a folder, or null for the top of their own tree. */
export async function findDestination(
  transaction: Transaction,
  caller: RequestPrincipal,
  folderId: string | null,
): Promise<TreeLocation & { depth: number }> {
  if (folderId === null) return { ownerId: caller.userId, parentId: null, depth: 0 }
  const wanted = { kind: 'folder', id: folderId, role: 'editor', param: 'folder_id' } as const
  const folder = requireNode(await findNode(transaction, caller, folderId), wanted)
  const depth = await depthOf(transaction, folderId)
  return { ownerId: folder.ownerId, parentId: folderId, depth }
}

/** Throws a 422 where folders would be deeper than they may; `height` of a file is 0. */
export function requireDepth({ depth }: { depth: number }, height: number): void {
  if (height === 0 || depth + height <= depthMax) return
  throw new AppError('unprocessable', `Folders may be ${depthMax} deep at most.`, {
    param: 'folder_id',
    code: 'folder_too_deep',
  })
}

/** Throws a 422 where a tree would have more than it may. */
export async function requireNodeQuota(
  transaction: Transaction,
  { ownerId }: TreeLocation,
  room: { added: number; perOwnerMax: number },
): Promise<void> {
  if ((await countNodes(transaction, ownerId)) + room.added <= room.perOwnerMax) return
  throw new AppError(
    'unprocessable',
    `The owner of the folder has ${room.perOwnerMax} files and folders, which is the limit.`,
    { code: 'too_many_files' },
  )
}

/** What has this name in a place, other than the node that is to get it. */
export async function findNamed(
  transaction: Transaction,
  place: TreeLocation,
  name: string,
  exceptId: string | null,
): Promise<NodeRef | undefined> {
  const taken = await findTaken(transaction, place, [nameKey(name)])
  return taken.find(({ id }) => id !== exceptId)
}

/** A name that is free in a place: the wanted one, or with `rename` one with a number. */
export async function freeName(
  transaction: Transaction,
  place: TreeLocation,
  wanted: { name: string; onConflict: OnConflict; exceptId: string | null },
): Promise<string> {
  const { name, exceptId } = wanted
  if ((await findNamed(transaction, place, name, exceptId)) === undefined) return name
  if (wanted.onConflict !== 'rename') throw nameConflict(name)
  for (let first = 2; first < numbersMax; first += numbersPerQuestion) {
    const names = Array.from({ length: numbersPerQuestion }, (_, at) =>
      numberedName(name, first + at),
    )
    const taken = await findTaken(transaction, place, names.map(nameKey))
    const keys = new Set(taken.filter(({ id }) => id !== exceptId).map(({ key }) => key))
    const free = names.find((each) => !keys.has(nameKey(each)))
    if (free !== undefined) return free
  }
  throw nameConflict(name)
}

export function nameConflict(name: string): AppError {
  return new AppError('conflict', `There is already something with the name "${name}".`, {
    param: 'name',
    code: 'name_conflict',
  })
}
