import { sql } from 'drizzle-orm'
import type { Role } from '#files/files.ts'
import { isAtLeast, rankOfRole } from '#files/roles.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { AccessMode } from '#retrieval/collections/collections.ts'
import type { CollectionPlace, Handle } from '#retrieval/collections/store.ts'
import { asCaller } from '#retrieval/search/scope-store.ts'
import { uuidArray } from './member-store.ts'

/** Who may do what with a collection, and put what into it. */

export function absentCollection(named: string, param = 'name'): AppError {
  return new AppError('not_found', `There is no collection "${named}".`, { param })
}

export function absentFile(fileId: string, param = 'file_id'): AppError {
  return new AppError('not_found', `There is no file with the id "${fileId}".`, { param })
}

/** Of somebody who sees it. */
export function demandRole({ role }: Pick<CollectionPlace, 'role'>, wanted: Role): void {
  if (isAtLeast(role, wanted)) return
  const sentence = `This needs the role ${wanted} on the collection; yours is ${role}.`
  throw new AppError('permission_denied', sentence)
}

/**
 * Who sees a collection of access mode `collection` finds all that is in it: who puts a file there
 * shares it, and must be allowed to.
 */
function roleToAdd(accessMode: AccessMode): Role {
  return accessMode === 'collection' ? 'manager' : 'viewer'
}

export async function demandFiles(
  handle: Handle,
  caller: RequestPrincipal,
  { fileIds, accessMode }: { fileIds: readonly string[]; accessMode: AccessMode },
): Promise<void> {
  const rows = await handle.execute<{ id: string; rank: number | null }>(sql`
    select node.id, node_role(node.id, ${asCaller(caller)}) as rank from node
    where node.id = any(${uuidArray(fileIds)}) and node.kind = 'file'`)
  const wanted = roleToAdd(accessMode)
  for (const fileId of fileIds) {
    const rank = rows.find(({ id }) => id === fileId.toLowerCase())?.rank ?? 0
    if (rank === 0) throw absentFile(fileId)
    if (rank < rankOfRole(wanted)) throw mayNotShare(wanted, 'the file')
  }
}

/** Before the memberships of a file are shown or ended, whatever collections they are in. */
export async function demandSharer(
  handle: Handle,
  caller: RequestPrincipal,
  fileId: string,
): Promise<void> {
  if (!isUuid(fileId)) throw absentFile(fileId, 'id')
  const [row] = await handle.execute<{ rank: number | null }>(sql`
    select node_role(node.id, ${asCaller(caller)}) as rank from node
    where node.id = ${fileId}::uuid and node.kind = 'file'`)
  const rank = row?.rank ?? 0
  if (rank === 0) throw absentFile(fileId, 'id')
  if (rank >= rankOfRole('manager')) return
  throw new AppError('permission_denied', 'This needs the role manager on the file.')
}

/** `folderId` becomes the folder of a collection. */
export async function demandFolder(
  handle: Handle,
  caller: RequestPrincipal,
  { folderId, accessMode }: { folderId: string; accessMode: AccessMode },
): Promise<void> {
  const [row] = await handle.execute<{ rank: number | null }>(sql`
    select node_role(node.id, ${asCaller(caller)}) as rank from node
    where node.id = ${folderId}::uuid and node.kind = 'folder'`)
  const wanted = roleToAdd(accessMode)
  if ((row?.rank ?? 0) === 0) {
    const sentence = `There is no folder with the id "${folderId}".`
    throw new AppError('not_found', sentence, { param: 'folder_id' })
  }
  if ((row?.rank ?? 0) < rankOfRole(wanted)) throw mayNotShare(wanted, 'the folder')
}

/** Before all that is in it can be found by everybody who sees it. */
export async function demandToOpen(
  handle: Handle,
  caller: RequestPrincipal,
  collectionId: string,
): Promise<void> {
  const wanted = roleToAdd('collection')
  const rows = await handle.execute(sql`
    select 1 from collection_file member
    join node on node.id = member.file_id and node.trashed_at is null
    left join node_roles(${asCaller(caller)}) held on held.node_id = node.id
    where member.collection_id = ${collectionId}::uuid
      and coalesce(held.role, 0) < ${rankOfRole(wanted)}
    limit 1`)
  if (rows.length > 0) throw mayNotShare(wanted, 'every file in the collection')
}

function mayNotShare(wanted: Role, what: string): AppError {
  return new AppError(
    'permission_denied',
    `Everybody who sees this collection finds what is in it, so this needs the role ${wanted} on ${what}.`,
  )
}
