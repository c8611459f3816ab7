import { sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { type Attributes, type NewContent, type Role, roleOfRank } from '#files/files.ts'
import { arrayText, type Handle, rankOn } from '#files/record-store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { StoredContent } from '#storage/storage.ts'

/** A node outside the trash. */
export type TreeNode = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly parentId: string | null
  /** Whether the principal may read the parent folder; true at the top level. */
  readonly isParentReadable: boolean
  readonly ownerId: string
  readonly name: string
  readonly version: number
  readonly role: Role
}

export type NodeRef = { readonly id: string; readonly kind: 'file' | 'folder' }

export type FilesDatabase = Pick<Database, 'drizzle'>

/** A change may affect 100,000 nodes, or wait for one that does. */
const queryTimeoutMs = 60_000
/** While a change waits for a lock, nodes may move to another owner. */
const lockAttemptsMax = 5

export type TreeStore = ReturnType<typeof createTreeStore>

/**
 * A transaction that changes a tree holds its lock until the end, so that what it checked stays true.
 */
export function createTreeStore({ drizzle }: FilesDatabase) {
  const query = createQueryRunner(queryTimeoutMs)
  return {
    /** Runs with the trees of these nodes and of these owners locked. */
    inTrees<T>(
      of: { nodes: readonly (string | null)[]; owners: readonly string[] },
      work: (transaction: Transaction) => Promise<T>,
    ): Promise<T> {
      return query(async () => {
        for (let attempt = 0; attempt < lockAttemptsMax; attempt++) {
          const done = await drizzle.transaction(async (transaction) => {
            const owners = [...new Set([...of.owners, ...(await ownersOf(transaction, of.nodes))])]
            await lockTrees(transaction, owners)
            const current = await ownersOf(transaction, of.nodes)
            if (!current.every((owner) => owners.includes(owner))) return undefined
            return { result: await work(transaction) }
          })
          if (done !== undefined) return done.result
        }
        throw new Error('tree locks could not be acquired')
      })
    },

    /** Protects the content from the sweep for an hour. */
    async keepContent({ sha256, bytes }: StoredContent, now: Date): Promise<void> {
      await query(async () =>
        drizzle.execute(sql`
          insert into blob (sha256, bytes, put_at)
          values (${sha256}, ${bytes}::bigint, ${now.toISOString()}::timestamptz)
          on conflict (sha256) do update set put_at = excluded.put_at`),
      )
    },
  }
}

async function ownersOf(
  handle: Handle,
  nodes: readonly (string | null)[],
): Promise<readonly string[]> {
  const ids = nodes.filter((id) => id !== null)
  const rows = await handle.execute<{ owner_id: string }>(sql`
    select distinct owner_id from node where id = any (${arrayText(ids)}::uuid[])`)
  return rows.map((row) => row.owner_id)
}

/** Sorted, so that two transactions cannot deadlock. */
async function lockTrees(handle: Handle, owners: readonly string[]): Promise<void> {
  for (const owner of owners.toSorted()) {
    await handle.execute(
      sql`select pg_advisory_xact_lock(hashtextextended(${`files of ${owner}`}, 0))`,
    )
  }
}

/** Undefined if the principal may not read it. */
export async function findNode(
  handle: Handle,
  principal: RequestPrincipal,
  id: string,
): Promise<TreeNode | undefined> {
  const [row] = await handle.execute<Omit<TreeNode, 'role'> & { rank: number | null }>(sql`
    select id, kind, parent_id as "parentId", owner_id as "ownerId", name, version,
      ${rankOn(sql`id`, principal)} as rank,
      parent_id is null or ${rankOn(sql`parent_id`, principal)} is not null as "isParentReadable"
    from node where id = ${id}::uuid`)
  if (row === undefined || row.rank === null) return undefined
  return { ...row, role: roleOfRank(row.rank) }
}

/** The number of folders from the top level to this one, inclusive. */
export async function depthOf(handle: Handle, folderId: string): Promise<number> {
  const [row] = await handle.execute<{ depth: number }>(sql`
    with recursive ancestor (id, parent_id) as (
      select id, parent_id from node where id = ${folderId}::uuid
      union all
      select parent.id, parent.parent_id from ancestor join node parent on parent.id = ancestor.parent_id)
    select count(*)::integer as depth from ancestor`)
  return row?.depth ?? 0
}

type NodeAtDepth = NodeRef & { depth: number }

/** The first node is the root; `height` is the number of nested folder levels. */
export type Subtree = { readonly nodes: readonly NodeRef[]; readonly height: number }

export function subtreeOf(rows: readonly NodeAtDepth[]): Subtree {
  const depths = rows.map(({ kind, depth }) => (kind === 'folder' ? depth : 0))
  return {
    nodes: rows.map(({ id, kind }) => ({ id, kind })),
    height: depths.reduce((max, depth) => Math.max(max, depth), 0),
  }
}

/** A node and everything below it, without the trash. */
export async function findSubtree(handle: Handle, id: string): Promise<Subtree> {
  const rows = await handle.execute<NodeAtDepth>(sql`
    with recursive subtree (id, kind, depth) as (
      select id, kind, 1 from node where id = ${id}::uuid and trashed_at is null
      union all
      select child.id, child.kind, subtree.depth + 1
      from subtree join node child on child.parent_id = subtree.id
      where child.trashed_at is null)
    select id, kind, depth from subtree`)
  return subtreeOf(rows)
}

export async function hasChildren(handle: Handle, folderId: string): Promise<boolean> {
  const rows = await handle.execute(sql`
    select 1 from node where parent_id = ${folderId}::uuid and trashed_at is null limit 1`)
  return rows.length > 0
}

/** The number of nodes of an owner, including the trash. */
export async function countNodes(handle: Handle, ownerId: string): Promise<number> {
  const [row] = await handle.execute<{ count: number }>(sql`
    select count(*)::integer as count from node where owner_id = ${ownerId}::uuid`)
  return row?.count ?? 0
}

/** Of all files of the owner of a node, those in the trash included. */
export async function storedBytesBeside(handle: Handle, id: string): Promise<number> {
  const [row] = await handle.execute<{ bytes: number }>(sql`
    select coalesce(sum(file.bytes), 0)::float8 as bytes
    from node join file on file.node_id = node.id
    where node.owner_id = (select owner_id from node where id = ${id}::uuid)`)
  return row?.bytes ?? 0
}

/** A folder, or the top level of a tree for a `parentId` of null. */
export type TreeLocation = { readonly ownerId: string; readonly parentId: string | null }

/** The nodes that have one of these name keys. */
export async function findTaken(
  handle: Handle,
  { ownerId, parentId }: TreeLocation,
  keys: readonly string[],
): Promise<readonly (NodeRef & { key: string })[]> {
  return handle.execute<NodeRef & { key: string }>(sql`
    select id, kind, name_key as key from node
    where owner_id = ${ownerId}::uuid and trashed_at is null
      and coalesce(parent_id, '00000000-0000-0000-0000-000000000000'::uuid)
        = coalesce(${parentId}::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
      and name_key = any (${arrayText(keys)}::text[])`)
}

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
  file: NewContent & { attributes: Attributes; purpose: string; lifetimeS: number | null },
): Promise<void> {
  await handle.execute(sql`
    insert into file (node_id, bytes, mime_type, sha256, attributes, purpose, expires_at)
    select id, ${file.content.bytes}::bigint, ${file.mimeType}, ${file.content.sha256},
      ${JSON.stringify(file.attributes)}::jsonb, ${file.purpose},
      created_at + ${file.lifetimeS}::float8 * interval '1 second'
    from node where id = ${id}::uuid`)
}

/** Copies the content and attributes; the copy does not expire. */
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

/** Renames and moves a node, and increments its version. */
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

/** Increments the version. */
export async function touchNode(handle: Handle, id: string, now: Date): Promise<void> {
  await handle.execute(sql`
    update node set version = version + 1, updated_at = ${now.toISOString()}::timestamptz
    where id = ${id}::uuid`)
}

/**
 * Changes the owner of nodes. Trashed nodes below them stay with the previous owner, at the top level.
 */
export async function transferOwnership(
  handle: Handle,
  ids: readonly string[],
  ownerId: string,
): Promise<void> {
  const nodeIds = sql`${arrayText(ids)}::uuid[]`
  await handle.execute(sql`
    update node set parent_id = null where parent_id = any (${nodeIds}) and trashed_at is not null`)
  await handle.execute(sql`update node set owner_id = ${ownerId}::uuid where id = any (${nodeIds})`)
}

export async function deleteNode(handle: Handle, id: string): Promise<void> {
  await handle.execute(sql`delete from node where id = ${id}::uuid`)
}
