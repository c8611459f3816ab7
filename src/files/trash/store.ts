import { sql } from 'drizzle-orm'
import type { Role } from '#files/files.ts'
import { roleOfRank } from '#files/roles.ts'
import { type NodeRef, type Subtree, subtreeOf, type TreeLocation } from '#files/tree/store.ts'
import { arrayText, type Handle, millis, principalArguments, rankOn } from '#files/view-store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'

export type TrashedNode = NodeRef &
  TreeLocation & {
    readonly name: string
    readonly trashId: string
    readonly trashedAt: Date
    readonly isParentLive: boolean
    /** What the caller may do with it, were it not in the trash; null: nothing. */
    readonly role: Role | null
  }

type TrashedRow = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly parent_id: string | null
  readonly owner_id: string
  readonly name: string
  readonly trash_id: string
  readonly trashed_ms: number
  readonly is_parent_live: boolean
  readonly rank: number | null
}

export async function findTrashed(
  handle: Handle,
  caller: RequestPrincipal,
  id: string,
): Promise<TrashedNode | undefined> {
  const [row] = await handle.execute<TrashedRow>(sql`
    select node.id, node.kind, node.parent_id, node.owner_id, node.name, node.trash_id,
      ${millis(sql`node.trashed_at`)} as trashed_ms,
      node.parent_id is null or parent.trashed_at is null as is_parent_live,
      greatest(case when node.owner_id = ${caller.userId}::uuid then 4 end,
        ${rankOn(sql`node.parent_id`, caller)},
        (select max(share.role) from share
          where share.resource_type = 'node' and share.resource_id = node.id
            and is_granted_to(share.principal_type, share.principal_id, ${principalArguments(caller)}))) as rank
    from node left join node parent on parent.id = node.parent_id
    where node.id = ${id}::uuid and node.trashed_at is not null`)
  if (row === undefined) return undefined
  return {
    id: row.id,
    kind: row.kind,
    parentId: row.parent_id,
    ownerId: row.owner_id,
    name: row.name,
    trashId: row.trash_id,
    trashedAt: new Date(row.trashed_ms),
    isParentLive: row.is_parent_live,
    role: row.rank === null ? null : roleOfRank(row.rank),
  }
}

/** Puts live nodes into the trash, as taken along with the first of them. */
export async function trashNodes(
  handle: Handle,
  ids: readonly string[],
  { trashId, now }: { trashId: string; now: Date },
): Promise<void> {
  await handle.execute(sql`
    update node set trashed_at = ${now.toISOString()}::timestamptz, trash_id = ${trashId}::uuid,
      version = version + 1
    where id = any (${arrayText(ids)}::uuid[])`)
}

/** A node in the trash and what was taken along with it, as `findSubtree` tells it. */
export async function findTrashedSubtree(
  handle: Handle,
  { id, trashId }: Pick<TrashedNode, 'id' | 'trashId'>,
): Promise<Subtree> {
  const rows = await handle.execute<NodeRef & { depth: number }>(sql`
    with recursive inside (id, kind, depth) as (
      select id, kind, 1 from node where id = ${id}::uuid
      union all
      select child.id, child.kind, inside.depth + 1
      from inside join node child on child.parent_id = inside.id
      where child.trash_id = ${trashId}::uuid)
    select id, kind, depth from inside`)
  return subtreeOf(rows)
}

/** Takes nodes out of the trash; where they are to be is written by `writeNode` before. */
export async function untrashNodes(handle: Handle, ids: readonly string[]): Promise<void> {
  await handle.execute(sql`
    update node set trashed_at = null, trash_id = null where id = any (${arrayText(ids)}::uuid[])`)
}
