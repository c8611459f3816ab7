import { sql } from 'drizzle-orm'
import type { Role } from '#files/files.ts'
import { isAtLeast, rankOfRole } from '#files/files.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import { callerArgs, uuidArray } from '#retrieval/sql-store.ts'
import type { AccessMode } from './collections.ts'
import type { CollectionAccess } from './lookup-store.ts'
import type { Handle } from './store.ts'

/** The rights that changes of collections need. */

export function collectionNotFound(reference: string, param = 'name'): AppError {
  return new AppError('not_found', `There is no collection "${reference}".`, { param })
}

export function collectionExpired(name: string): AppError {
  const message = `The vector store "${name}" has expired.`
  return new AppError('unprocessable', message, { code: 'vector_store_expired' })
}

export function fileNotFound(fileId: string, param = 'file_id'): AppError {
  return new AppError('not_found', `There is no file with the id "${fileId}".`, { param })
}

export function requireCollectionRole(
  { role }: Pick<CollectionAccess, 'role'>,
  wanted: Role,
): void {
  if (isAtLeast(role, wanted)) return
  const message = `This needs the role ${wanted} on the collection; yours is ${role}.`
  throw new AppError('permission_denied', message)
}

/** Adding a file to a collection of access mode `collection` shares it. */
function roleToAdd(accessMode: AccessMode): Role {
  return accessMode === 'collection' ? 'manager' : 'viewer'
}

/** Before files are added. */
export async function requireFileRoles(
  handle: Handle,
  caller: RequestPrincipal,
  { fileIds, accessMode }: { fileIds: readonly string[]; accessMode: AccessMode },
): Promise<void> {
  const rankOf = await readRanks(handle, caller, { ids: fileIds, kind: 'file' })
  const wanted = roleToAdd(accessMode)
  for (const fileId of fileIds) {
    if (rankOf(fileId) === 0) throw fileNotFound(fileId)
    if (rankOf(fileId) < rankOfRole(wanted)) throw notSharable(wanted, 'the file')
  }
}

/** Required to list or remove the memberships of a file in any collection. */
export async function requireFileManager(
  handle: Handle,
  caller: RequestPrincipal,
  fileId: string,
): Promise<void> {
  if (!isUuid(fileId)) throw fileNotFound(fileId, 'id')
  const rankOf = await readRanks(handle, caller, { ids: [fileId], kind: 'file' })
  if (rankOf(fileId) === 0) throw fileNotFound(fileId, 'id')
  if (rankOf(fileId) >= rankOfRole('manager')) return
  throw new AppError('permission_denied', 'This needs the role manager on the file.')
}

/** Before a folder is linked to a collection. */
export async function requireFolderRole(
  handle: Handle,
  caller: RequestPrincipal,
  { folderId, accessMode }: { folderId: string; accessMode: AccessMode },
): Promise<void> {
  const rankOf = await readRanks(handle, caller, { ids: [folderId], kind: 'folder' })
  const wanted = roleToAdd(accessMode)
  if (rankOf(folderId) === 0) {
    const message = `There is no folder with the id "${folderId}".`
    throw new AppError('not_found', message, { param: 'folder_id' })
  }
  if (rankOf(folderId) < rankOfRole(wanted)) throw notSharable(wanted, 'the folder')
}

/** Before the access mode becomes `collection`. */
export async function requireSharableMembers(
  handle: Handle,
  caller: RequestPrincipal,
  collectionId: string,
): Promise<void> {
  const wanted = roleToAdd('collection')
  const rows = await handle.execute(sql`
    select 1 from collection_file member
    join node on node.id = member.file_id and node.trashed_at is null
    left join node_roles(${callerArgs(caller)}) held on held.node_id = node.id
    where member.collection_id = ${collectionId}::uuid
      and coalesce(held.role, 0) < ${rankOfRole(wanted)}
    limit 1`)
  if (rows.length > 0) throw notSharable(wanted, 'every file in the collection')
}

/** Returns the caller's rank on a node by its id; 0 where they may not read it. */
async function readRanks(
  handle: Handle,
  caller: RequestPrincipal,
  { ids, kind }: { ids: readonly string[]; kind: 'file' | 'folder' },
): Promise<(id: string) => number> {
  const rows = await handle.execute<{ id: string; rank: number | null }>(sql`
    select node.id, node_role(node.id, ${callerArgs(caller)}) as rank from node
    where node.id = any(${uuidArray(ids)}) and node.kind = ${kind}`)
  const ranks = new Map(rows.map(({ id, rank }) => [id, rank ?? 0]))
  return (id) => ranks.get(id.toLowerCase()) ?? 0
}

function notSharable(wanted: Role, what: string): AppError {
  return new AppError(
    'permission_denied',
    `Everyone who sees this collection finds its files, so this needs the role ${wanted} on ${what}.`,
  )
}
