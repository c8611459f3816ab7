import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { type FileHooks, type Role, roleOfRank } from '#files/files.ts'
import { arrayText, type Handle, millis, principalArguments, rankOn } from '#files/record-store.ts'
import { type NodeRef, type Subtree, subtreeOf, type TreeLocation } from '#files/tree/store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'

export type TrashedNode = NodeRef &
  TreeLocation & {
    readonly name: string
    readonly trashId: string
    readonly trashedAt: Date
    readonly isParentLive: boolean
    /** The role that the principal would have outside the trash. */
    readonly role: Role | null
  }

export async function findTrashed(
  handle: Handle,
  principal: RequestPrincipal,
  id: string,
): Promise<TrashedNode | undefined> {
  type Row = Omit<TrashedNode, 'trashedAt' | 'role'> & { trashedMs: number; rank: number | null }
  const [row] = await handle.execute<Row>(sql`
    select node.id, node.kind, node.parent_id as "parentId", node.owner_id as "ownerId", node.name,
      node.trash_id as "trashId", ${millis(sql`node.trashed_at`)} as "trashedMs",
      node.parent_id is null or parent.trashed_at is null as "isParentLive",
      greatest(case when node.owner_id = ${principal.userId}::uuid then 4 end,
        ${rankOn(sql`node.parent_id`, principal)},
        (select max(share.role) from share
          where share.resource_type = 'node' and share.resource_id = node.id
            and is_granted_to(share.principal_type, share.principal_id, ${principalArguments(principal)}))) as rank
    from node left join node parent on parent.id = node.parent_id
    where node.id = ${id}::uuid and node.trashed_at is not null`)
  if (row === undefined) return undefined
  const role = row.rank === null ? null : roleOfRank(row.rank)
  return { ...row, trashedAt: new Date(row.trashedMs), role }
}

/** Moves nodes to the trash; `trashId` is the node that was deleted. */
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

/** A trashed node and everything that was trashed along with it. */
export async function findTrashedSubtree(
  handle: Handle,
  { id, trashId }: Pick<TrashedNode, 'id' | 'trashId'>,
): Promise<Subtree> {
  const rows = await handle.execute<NodeRef & { depth: number }>(sql`
    with recursive subtree (id, kind, depth) as (
      select id, kind, 1 from node where id = ${id}::uuid
      union all
      select child.id, child.kind, subtree.depth + 1
      from subtree join node child on child.parent_id = subtree.id
      where child.trash_id = ${trashId}::uuid)
    select id, kind, depth from subtree`)
  return subtreeOf(rows)
}

/** `writeNode` sets the location before. */
export async function untrashNodes(handle: Handle, ids: readonly string[]): Promise<void> {
  await handle.execute(sql`
    update node set trashed_at = null, trash_id = null where id = any (${arrayText(ids)}::uuid[])`)
}

const filesPerTransaction = 200
const uploadsPerStatement = 200
/** Expired uploads are kept for late requests, and for a completion that began in time. */
const expiredUploadMs = 3_600_000
const nodesPerStatement = 1_000
/** A transaction locks the rows of its contents until the storage has removed them. */
const contentsPerTransaction = 20
/** Content of this age without a file is not part of a running upload. */
const contentAgeMinMs = 3_600_000

export type SweepDatabase = Pick<Database, 'drizzle' | 'kind'>

/** Several processes may sweep at once: each skips rows that another has locked. */
export function createSweepStore({ drizzle, kind }: SweepDatabase) {
  let vacuumedState = ''
  const dropFiles = (hooks: Pick<FileHooks, 'changed'>, isDue: SQL, drop: Drop) =>
    drizzle.transaction(async (transaction) => {
      const due = await transaction.execute<{ id: string }>(sql`
        select node.id from node join file on file.node_id = node.id
        where ${isDue} limit ${filesPerTransaction}::integer for update of node skip locked`)
      const fileIds = due.map(({ id }) => id)
      if (fileIds.length > 0) await hooks.changed(transaction, { kind: 'deleted', fileIds })
      await drop(transaction, sql`${arrayText(fileIds)}::uuid[]`)
      return fileIds.length === filesPerTransaction
    })
  return {
    /**
     * Deletes expired files. Like the next methods, returns whether there may be more.
     */
    dropExpired: (hooks: Pick<FileHooks, 'changed'>, now: Date): Promise<boolean> =>
      dropFiles(hooks, sql`file.expires_at <= ${at(now)}`, async (transaction, ids) => {
        await transaction.execute(sql`delete from node where id = any (${ids})`)
      }),

    /** Deletes the content of old trash; its nodes stay for a while, so that a restore is `gone`. */
    dropTrashed: (hooks: Pick<FileHooks, 'changed'>, trashedTo: Date): Promise<boolean> =>
      dropFiles(hooks, sql`node.trashed_at <= ${at(trashedTo)}`, async (transaction, ids) => {
        await transaction.execute(sql`delete from file where node_id = any (${ids})`)
      }),

    /** Deletes nodes whose content was dropped. */
    async dropNodes(trashedTo: Date): Promise<boolean> {
      const dropped = await drizzle.execute(sql`
        delete from node where id in (
          select id from node where trashed_at <= ${at(trashedTo)}
          limit ${nodesPerStatement}::integer for update skip locked)
        returning 1`)
      return dropped.length === nodesPerStatement
    },

    /** Deletes uploads that expired an hour ago, with their parts. */
    async dropUploads(now: Date): Promise<boolean> {
      const dropped = await drizzle.execute(sql`
        delete from upload where id in (
          select id from upload where expires_at <= ${at(new Date(now.getTime() - expiredUploadMs))}
          limit ${uploadsPerStatement}::integer for update skip locked)
        returning 1`)
      return dropped.length === uploadsPerStatement
    },

    /**
     * Removes content that no file, no part of an upload and no batch uses. The deleted row stays locked while `remove` runs, so a
     * concurrent upload of the same content waits and then finds it missing.
     */
    dropContents: (now: Date, remove: (sha256: string) => Promise<void>): Promise<boolean> =>
      drizzle.transaction(async (transaction) => {
        const before = new Date(now.getTime() - contentAgeMinMs)
        const dropped = await transaction.execute<{ sha256: string }>(sql`
          delete from blob where sha256 in (
            select sha256 from blob
            where put_at <= ${at(before)}
              and not exists (select 1 from file where file.sha256 = blob.sha256)
              and not exists (select 1 from upload_part where upload_part.sha256 = blob.sha256)
              and not exists (select 1 from batch where batch.input_sha256 = blob.sha256)
              and not exists (select 1 from batch where batch.results_sha256 = blob.sha256)
            limit ${contentsPerTransaction}::integer for update skip locked)
          returning sha256`)
        for (const { sha256 } of dropped) await remove(sha256)
        return dropped.length === contentsPerTransaction
      }),

    /** PostgreSQL has autovacuum; the embedded database has none. */
    async vacuum(): Promise<void> {
      if (kind === 'postgres') return
      const [row] = await drizzle.execute<{ state: string }>(
        sql`select concat(count(*), ' ', sum(version)) as state from node`,
      )
      if (row === undefined || row.state === vacuumedState) return
      await drizzle.execute(sql`vacuum (analyze) node, file, blob, share`)
      vacuumedState = row.state
    },
  }
}

type Drop = (transaction: Transaction, ids: SQL) => Promise<void>

function at(time: Date): SQL {
  return sql`${time.toISOString()}::timestamptz`
}
