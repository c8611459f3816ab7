import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { FileHooks } from '#files/files.ts'
import { arrayText } from '#files/view-store.ts'
import type { Transaction } from '#jobs/jobs.ts'

const filesPerTransaction = 200
const nodesPerStatement = 1_000
/** A transaction holds the rows of its contents until the storage has removed them. */
const contentsPerTransaction = 20
/** How long a content that no file names may wait for one that is being filed. */
const contentAgeMinMs = 3_600_000

export type SweptDatabase = Pick<Database, 'drizzle' | 'kind'>

/** What goes for good. Several processes may sweep at once: what one of them holds, others pass over. */
export function createSweepStore({ drizzle, kind }: SweptDatabase) {
  let tidied = ''
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
     * Deletes what is past its own end, and the contents of what was in the trash since `trashedTo`.
     * Such a file leaves its name behind for a while, so that who wants it back is told that it is
     * gone. Each of these says whether there may be more.
     */
    dropExpired: (hooks: Pick<FileHooks, 'changed'>, now: Date): Promise<boolean> =>
      dropFiles(hooks, sql`file.expires_at <= ${at(now)}`, async (transaction, ids) => {
        await transaction.execute(sql`delete from node where id = any (${ids})`)
      }),

    dropTrashed: (hooks: Pick<FileHooks, 'changed'>, trashedTo: Date): Promise<boolean> =>
      dropFiles(hooks, sql`node.trashed_at <= ${at(trashedTo)}`, async (transaction, ids) => {
        await transaction.execute(sql`delete from file where node_id = any (${ids})`)
      }),

    /** Deletes what is left of nodes without content. */
    async dropNodes(trashedTo: Date): Promise<boolean> {
      const dropped = await drizzle.execute(sql`
        delete from node where id in (
          select id from node where trashed_at <= ${at(trashedTo)}
          limit ${nodesPerStatement}::integer for update skip locked)
        returning 1`)
      return dropped.length === nodesPerStatement
    },

    /**
     * Removes contents that no file names. The row is gone and held while `remove` runs: whoever files
     * the same content now waits for that, and then sees that it is no longer there.
     */
    dropContents: (now: Date, remove: (sha256: string) => Promise<void>): Promise<boolean> =>
      drizzle.transaction(async (transaction) => {
        const before = new Date(now.getTime() - contentAgeMinMs)
        const dropped = await transaction.execute<{ sha256: string }>(sql`
          delete from blob where sha256 in (
            select sha256 from blob
            where put_at <= ${at(before)}
              and not exists (select 1 from file where file.sha256 = blob.sha256)
            limit ${contentsPerTransaction}::integer for update skip locked)
          returning sha256`)
        for (const { sha256 } of dropped) await remove(sha256)
        return dropped.length === contentsPerTransaction
      }),

    /** A server does this by itself; the embedded database would never know how large its tables are. */
    async tidy(): Promise<void> {
      if (kind === 'postgres') return
      const [row] = await drizzle.execute<{ state: string }>(
        sql`select concat(count(*), ' ', sum(version)) as state from node`,
      )
      if (row === undefined || row.state === tidied) return
      await drizzle.execute(sql`vacuum (analyze) node, file, blob, share`)
      tidied = row.state
    },
  }
}

type Drop = (transaction: Transaction, ids: SQL) => Promise<void>

function at(time: Date): SQL {
  return sql`${time.toISOString()}::timestamptz`
}
