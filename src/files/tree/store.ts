import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import type { Role } from '#files/files.ts'
import { roleOfRank } from '#files/roles.ts'
import { arrayText, type Handle, rankOn } from '#files/view-store.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { StoredContent } from '#storage/storage.ts'

/** A live node as a change of the tree needs it. */
export type TreeNode = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly parentId: string | null
  /** Whether the caller may read the folder that it is in; at the top: true. */
  readonly isParentReadable: boolean
  readonly ownerId: string
  readonly name: string
  readonly version: number
  readonly role: Role
}

export type NodeRef = { readonly id: string; readonly kind: 'file' | 'folder' }

export type FilesDatabase = Pick<Database, 'drizzle'>

/** A change may be of a hundred thousand nodes, or wait for one that is. */
const waitMaxMs = 60_000
/** While one waits for a tree, its nodes may have come to another owner. */
const lockAttemptsMax = 5

export type TreeStore = ReturnType<typeof createTreeStore>

/**
 * What changes trees. A tree is changed by one at a time: who changes it holds its lock until the
 * end of the transaction, so that what was checked stays true.
 */
export function createTreeStore({ drizzle }: FilesDatabase) {
  const ask = createQueryRunner(waitMaxMs)
  return {
    /** Runs with the trees locked that these nodes are in, and those of these owners. */
    inTrees<T>(
      of: { nodes: readonly (string | null)[]; owners: readonly string[] },
      work: (transaction: Transaction) => Promise<T>,
    ): Promise<T> {
      return ask(async () => {
        for (let attempt = 0; attempt < lockAttemptsMax; attempt++) {
          const done = await drizzle.transaction(async (transaction) => {
            const owners = [...new Set([...of.owners, ...(await ownersOf(transaction, of.nodes))])]
            await lockTrees(transaction, owners)
            const now = await ownersOf(transaction, of.nodes)
            if (!now.every((owner) => owners.includes(owner))) return undefined
            return { result: await work(transaction) }
          })
          if (done !== undefined) return done.result
        }
        throw new Error('the trees do not come to rest')
      })
    },

    /** The content has a row that nobody removes within the hour, whatever becomes of its file. */
    async keepContent({ sha256, bytes }: StoredContent, now: Date): Promise<void> {
      await ask(async () =>
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

/** In one order everywhere, so that two never wait for each other. */
async function lockTrees(handle: Handle, owners: readonly string[]): Promise<void> {
  for (const owner of owners.toSorted()) {
    await handle.execute(
      sql`select pg_advisory_xact_lock(hashtextextended(${`files of ${owner}`}, 0))`,
    )
  }
}

type NodeRow = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly parent_id: string | null
  readonly is_parent_seen: boolean
  readonly owner_id: string
  readonly name: string
  readonly version: number
  readonly rank: number | null
}

/** Undefined where the caller may not read it. */
export async function findNode(
  handle: Handle,
  caller: RequestPrincipal,
  id: string,
): Promise<TreeNode | undefined> {
  const [row] = await handle.execute<NodeRow>(sql`
    select id, kind, parent_id, owner_id, name, version, ${rankOn(sql`id`, caller)} as rank,
      parent_id is null or ${rankOn(sql`parent_id`, caller)} is not null as is_parent_seen
    from node where id = ${id}::uuid`)
  if (row === undefined || row.rank === null) return undefined
  return {
    id: row.id,
    kind: row.kind,
    parentId: row.parent_id,
    isParentReadable: row.is_parent_seen,
    ownerId: row.owner_id,
    name: row.name,
    version: row.version,
    role: roleOfRank(row.rank),
  }
}

/** How many folders there are from the top down to this one, itself included. */
export async function depthOf(handle: Handle, folderId: string): Promise<number> {
  const [row] = await handle.execute<{ depth: number }>(sql`
    with recursive up (id, parent_id) as (
      select id, parent_id from node where id = ${folderId}::uuid
      union all
      select parent.id, parent.parent_id from up join node parent on parent.id = up.parent_id)
    select count(*)::integer as depth from up`)
  return row?.depth ?? 0
}

type Deep = NodeRef & { depth: number }

/** The first member is its top; `height` is how many folders deep it goes. */
export type Subtree = { readonly members: readonly NodeRef[]; readonly height: number }

export function subtreeOf(rows: readonly Deep[]): Subtree {
  const depths = rows.map(({ kind, depth }) => (kind === 'folder' ? depth : 0))
  return {
    members: rows.map(({ id, kind }) => ({ id, kind })),
    height: depths.reduce((known, depth) => Math.max(known, depth), 0),
  }
}

/** A live node and all that is live below it. */
export async function findSubtree(handle: Handle, id: string): Promise<Subtree> {
  const rows = await handle.execute<Deep>(sql`
    with recursive inside (id, kind, depth) as (
      select id, kind, 1 from node where id = ${id}::uuid and trashed_at is null
      union all
      select child.id, child.kind, inside.depth + 1
      from inside join node child on child.parent_id = inside.id
      where child.trashed_at is null)
    select id, kind, depth from inside`)
  return subtreeOf(rows)
}

export async function hasChildren(handle: Handle, folderId: string): Promise<boolean> {
  const rows = await handle.execute(sql`
    select 1 from node where parent_id = ${folderId}::uuid and trashed_at is null limit 1`)
  return rows.length > 0
}

/** Of a tree, what is in the trash included. */
export async function countNodes(handle: Handle, ownerId: string): Promise<number> {
  const [row] = await handle.execute<{ count: number }>(sql`
    select count(*)::integer as count from node where owner_id = ${ownerId}::uuid`)
  return row?.count ?? 0
}

/** A folder, or the top of a tree where `parentId` is null. */
export type TreeLocation = { readonly ownerId: string; readonly parentId: string | null }

/** What of these keys is there already. */
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
