import { sql } from 'drizzle-orm'
import type { Attributes, NewContent } from '#files/files.ts'
import type { TreeLocation } from '#files/tree/store.ts'
import { arrayText, type Handle } from './view-store.ts'

export async function insertNode(
  handle: Handle,
  node: TreeLocation & {
    id: string
    kind: 'file' | 'folder'
    createdBy: string
    name: string
    key: string
    now: Date
  },
): Promise<void> {
  const now = sql`${node.now.toISOString()}::timestamptz`
  await handle.execute(sql`
    insert into node (id, kind, parent_id, owner_id, created_by, name, name_key, created_at,
      updated_at)
    values (${node.id}::uuid, ${node.kind}, ${node.parentId}::uuid, ${node.ownerId}::uuid,
      ${node.createdBy}::uuid, ${node.name}, ${node.key}, ${now}, ${now})`)
}

export async function insertFile(
  handle: Handle,
  id: string,
  file: NewContent & { attributes: Attributes; purpose: string; expiresAt: Date | null },
): Promise<void> {
  await handle.execute(sql`
    insert into file (node_id, bytes, mime_type, sha256, attributes, purpose, expires_at)
    values (${id}::uuid, ${file.content.bytes}::bigint, ${file.mimeType}, ${file.content.sha256},
      ${JSON.stringify(file.attributes)}::jsonb, ${file.purpose},
      ${file.expiresAt?.toISOString() ?? null}::timestamptz)`)
}

/** Another file of the same content, without an end. */
export async function copyFile(handle: Handle, from: string, to: string): Promise<void> {
  await handle.execute(sql`
    insert into file (node_id, bytes, mime_type, sha256, attributes, purpose)
    select ${to}::uuid, bytes, mime_type, sha256, attributes, purpose
    from file where node_id = ${from}::uuid`)
}

export async function writeContent(
  handle: Handle,
  id: string,
  { content, mimeType }: NewContent,
): Promise<void> {
  await handle.execute(sql`
    update file set bytes = ${content.bytes}::bigint, mime_type = ${mimeType},
      sha256 = ${content.sha256}
    where node_id = ${id}::uuid`)
}

export async function readStoredAttributes(handle: Handle, id: string): Promise<Attributes> {
  const [row] = await handle.execute<{ attributes: Attributes }>(sql`
    select attributes from file where node_id = ${id}::uuid`)
  return row?.attributes ?? {}
}

export async function writeAttributes(
  handle: Handle,
  id: string,
  attributes: Attributes,
): Promise<void> {
  await handle.execute(sql`
    update file set attributes = ${JSON.stringify(attributes)}::jsonb where node_id = ${id}::uuid`)
}

/** Counts a change, and puts the node where it is now to be. */
export async function writeNode(
  handle: Handle,
  id: string,
  node: { parentId: string | null; name: string; key: string; now: Date },
): Promise<void> {
  await handle.execute(sql`
    update node set parent_id = ${node.parentId}::uuid, name = ${node.name},
      name_key = ${node.key}, version = version + 1,
      updated_at = ${node.now.toISOString()}::timestamptz
    where id = ${id}::uuid`)
}

/** Counts a change of what belongs to the node. */
export async function touchNode(handle: Handle, id: string, now: Date): Promise<void> {
  await handle.execute(sql`
    update node set version = version + 1, updated_at = ${now.toISOString()}::timestamptz
    where id = ${id}::uuid`)
}

/**
 * Gives live nodes to another owner. What lies below them in the trash stays with the one before,
 * at the top of their tree.
 */
export async function transferOwnership(
  handle: Handle,
  ids: readonly string[],
  ownerId: string,
): Promise<void> {
  const given = sql`${arrayText(ids)}::uuid[]`
  await handle.execute(sql`
    update node set parent_id = null where parent_id = any (${given}) and trashed_at is not null`)
  await handle.execute(sql`update node set owner_id = ${ownerId}::uuid where id = any (${given})`)
}

export async function deleteNode(handle: Handle, id: string): Promise<void> {
  await handle.execute(sql`delete from node where id = ${id}::uuid`)
}
