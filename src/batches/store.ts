import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { batch, batchLine } from '#db/schema/batches.ts'
import type { Page } from '#lib/page.ts'
import { type Batch, type BatchError, type Ending, messagesPath, type NewBatch } from './batches.ts'

export type BatchStore = ReturnType<typeof createBatchStore>

/** Whose batches, and through which API they were created. */
export type BatchOwner = { readonly ownerId: string; readonly isMessages: boolean }

export type BatchPageRequest = {
  readonly limit: number
  /** The id of a batch beside the page, and on which side of it the page is; null: the newest. */
  readonly cursor: { readonly id: string; readonly isBefore: boolean } | null
}

type Handle = Pick<Transaction, 'execute'>
type AddJob = (transaction: Transaction, id: string) => Promise<void>

const sweptPerStatement = 50

/**
 * The rows of batches. Methods of clients take the owner: the batch of another owner does not exist for
 * them.
 */
export function createBatchStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const query = createQueryRunner()
  return {
    /** False: the owner has `unfinishedMax` unfinished batches. */
    insert: (
      given: NewBatch,
      { unfinishedMax, addJob }: { unfinishedMax: number; addJob: AddJob },
    ) =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          // Serialises the requests of one owner, so that they cannot exceed the limit together.
          await transaction.execute(
            sql`select pg_advisory_xact_lock(hashtextextended(${`batches of ${given.ownerId}`}, 0))`,
          )
          const isOpen = sql`owner_id = ${given.ownerId}::uuid and ended_at is null`
          if ((await transaction.$count(batch, isOpen)) >= unfinishedMax) return false
          const { groups, headers, metadata } = given
          await transaction.insert(batch).values({
            ...given,
            groups: JSON.stringify(groups),
            headers: Object.keys(headers).length === 0 ? null : JSON.stringify(headers),
            metadata: metadata === null ? null : JSON.stringify(metadata),
            status: 'validating',
          })
          await addJob(transaction, given.id)
          return true
        }),
      ),

    find: (owner: BatchOwner, id: string): Promise<Batch | undefined> =>
      query(() => findWhere(drizzle, sql`${isId(id)} and ${isOf(owner)}`)),

    /** Newest first. Undefined: the owner has no batch with the id of the cursor. */
    list: (owner: BatchOwner, { limit, cursor }: BatchPageRequest) =>
      query(async (): Promise<Page<Batch> | undefined> => {
        const place = sql`(created_at, id)`
        const isBefore = cursor?.isBefore === true
        const beside =
          cursor === null
            ? sql`true`
            : sql`${place} ${isBefore ? sql`>` : sql`<`}
                (select created_at, id from ${batch} where ${isId(cursor.id)} and ${isOf(owner)})`
        if (cursor !== null) {
          const found = await findWhere(drizzle, sql`${isId(cursor.id)} and ${isOf(owner)}`)
          if (found === undefined) return undefined
        }
        const rows = await drizzle
          .select()
          .from(batch)
          .where(sql`${isOf(owner)} and ${beside}`)
          .orderBy(isBefore ? sql`created_at, id` : sql`created_at desc, id desc`)
          .limit(limit + 1)
        const items = rows.slice(0, limit).map(readBatch)
        return {
          items: isBefore ? items.reverse() : items,
          hasMore: rows.length > limit,
        }
      }),

    /** Deletes a batch that has ended; its lines go with it. */
    remove: (owner: BatchOwner, id: string): Promise<boolean> =>
      query(async () => {
        const removed = await drizzle.execute(sql`
          delete from ${batch} where ${isId(id)} and ${isOf(owner)} and ended_at is not null
          returning 1`)
        return removed.length > 0
      }),

    /** Begins to cancel a batch that no other end has begun for; false: nothing has changed. */
    cancel: (owner: BatchOwner, id: string, given: { addJob: AddJob; now: Date }) =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          const changed = await transaction.execute(sql`
            update ${batch} set status = 'cancelling', ending = 'cancelled',
              cancelling_at = ${at(given.now)}
            where ${isId(id)} and ${isOf(owner)} and status in ('validating', 'in_progress')
            returning 1`)
          if (changed.length > 0) await given.addJob(transaction, id)
          return changed.length > 0
        }),
      ),

    // The rest runs in the background and waits for the database.

    findById: (id: string): Promise<Batch | undefined> => findWhere(drizzle, isId(id)),

    /** Ends the validation of a batch; false: it was not validating any more. */
    begin: (
      id: string,
      given: {
        total: number
        model: string | null
        now: Date
        addJobs: (transaction: Transaction) => Promise<void>
      },
    ): Promise<boolean> =>
      drizzle.transaction(async (transaction) => {
        const changed = await transaction.execute(sql`
          update ${batch} set status = 'in_progress', in_progress_at = ${at(given.now)},
            total = ${given.total}::integer, model = ${given.model}
          where ${isId(id)} and status = 'validating' returning 1`)
        if (changed.length > 0) await given.addJobs(transaction)
        return changed.length > 0
      }),

    /** Begins the end of a batch that has failed; false: another end has begun. */
    beginFailure: (
      id: string,
      given: { errors: readonly BatchError[]; total?: number; addJob: AddJob; now: Date },
    ): Promise<boolean> =>
      drizzle.transaction(async (transaction) => {
        const total = given.total === undefined ? sql`total` : sql`${given.total}::integer`
        const changed = await transaction.execute(sql`
          update ${batch} set status = 'finalizing', ending = 'failed',
            errors = ${JSON.stringify(given.errors)}, total = ${total},
            finalizing_at = ${at(given.now)}
          where ${isId(id)} and status in ('validating', 'in_progress') returning 1`)
        if (changed.length > 0) await given.addJob(transaction, id)
        return changed.length > 0
      }),

    /** Records a written output in the transaction that creates it; throws if there is one. */
    async setOutput(
      handle: Handle,
      id: string,
      output: { outputFileId: string } | { errorFileId: string },
    ): Promise<void> {
      const [column, fileId] =
        'outputFileId' in output
          ? [sql`output_file_id`, output.outputFileId]
          : [sql`error_file_id`, output.errorFileId]
      const changed = await handle.execute(sql`
        update ${batch} set ${column} = ${fileId}::uuid
        where ${isId(id)} and ${column} is null and ended_at is null returning 1`)
      if (changed.length === 0) throw new Error('the batch has this file already')
    },

    async setResults(id: string, sha256: string): Promise<void> {
      await drizzle.execute(sql`
        update ${batch} set results_sha256 = ${sha256}
        where ${isId(id)} and results_sha256 is null and ended_at is null`)
    },

    /**
     * Ends a batch whose outputs are written; undefined: it has ended before. `failure` replaces the
     * ending. `announce` is in the same transaction.
     */
    end: (
      id: string,
      given: {
        now: Date
        failure?: BatchError
        announce: (transaction: Transaction, ended: Batch) => Promise<void>
      },
    ): Promise<Batch | undefined> =>
      drizzle.transaction(async (transaction) => {
        const { failure } = given
        const ending = failure === undefined ? sql`ending` : sql`'failed'`
        const errors =
          failure === undefined ? sql`errors` : sql`coalesce(errors, ${JSON.stringify([failure])})`
        await transaction.execute(sql`
          select id from ${batch} where ${isId(id)} for no key update`)
        const changed = await transaction.execute(sql`
          update ${batch} set status = ${ending}, ending = ${ending}, errors = ${errors},
            ended_at = ${at(given.now)}
          where ${isId(id)} and ended_at is null and status in ('finalizing', 'cancelling')
          returning 1`)
        const ended =
          changed.length === 0 ? undefined : await findWhere(transaction, sql`${isId(id)}`)
        if (ended !== undefined) await given.announce(transaction, ended)
        return ended
      }),

    /** Begins the end of batches whose time is over; returns their ids. */
    expire: (now: Date, addJob: AddJob): Promise<readonly string[]> =>
      drizzle.transaction(async (transaction) => {
        const rows = await transaction.execute<{ id: string }>(sql`
          update ${batch} set status = 'finalizing', ending = 'expired',
            finalizing_at = ${at(now)}
          where id in (
            select id from ${batch} where ended_at is null and expires_at <= ${at(now)}
              and status in ('validating', 'in_progress')
            limit ${sweptPerStatement}::integer for update skip locked)
          returning id`)
        for (const { id } of rows) await addJob(transaction, id)
        return rows.map(({ id }) => id)
      }),

    /** Deletes batches that ended before; returns whether there may be more. */
    async dropEnded(endedTo: Date): Promise<boolean> {
      const dropped = await drizzle.execute(sql`
        delete from ${batch} where id in (
          select id from ${batch} where ended_at <= ${at(endedTo)}
          limit ${sweptPerStatement}::integer for update skip locked)
        returning 1`)
      return dropped.length === sweptPerStatement
    },

    /** Unfinished batches by status, of all replicas. */
    countOpen: (): Promise<readonly { status: string; batches: number }[]> =>
      drizzle.execute<{ status: string; batches: number }>(sql`
        select status, count(*)::integer as batches from ${batch}
        where ended_at is null group by status`),

    /** Lines of unfinished batches without an answer. */
    async countPending(): Promise<number> {
      const [row] = await drizzle.execute<{ lines: number }>(sql`
        select coalesce(sum(total - completed - failed), 0)::float8 as lines
        from ${batch} where ended_at is null`)
      return row?.lines ?? 0
    },

    /** Deletes some lines of an ended batch; returns whether there may be more. */
    async dropLines(id: string, countMax: number): Promise<boolean> {
      const dropped = await drizzle.execute(sql`
        delete from ${batchLine} where batch_id = ${id} and line in (
          select line from ${batchLine} where batch_id = ${id} order by line
          limit ${countMax}::integer)
        and exists (select 1 from ${batch} where ${isId(id)} and ended_at is not null)
        returning 1`)
      return dropped.length === countMax
    },
  }
}

async function findWhere(
  handle: Pick<Transaction, 'select'>,
  condition: SQL,
): Promise<Batch | undefined> {
  const [row] = await handle.select().from(batch).where(condition)
  return row === undefined ? undefined : readBatch(row)
}

/** No id has a NUL, which the database refuses. */
function isId(id: string): SQL {
  return sql`${batch.id} = ${id.replaceAll('\0', '')}`
}

function isOf({ ownerId, isMessages }: BatchOwner): SQL {
  const isEndpoint = isMessages ? sql`=` : sql`<>`
  return sql`owner_id = ${ownerId}::uuid and endpoint ${isEndpoint} ${messagesPath}`
}

function at(time: Date): SQL {
  return sql`${time.toISOString()}::timestamptz`
}

function readBatch({
  groups,
  headers,
  metadata,
  errors,
  ending,
  inputTokens,
  cachedTokens,
  outputTokens,
  reasoningTokens,
  ...row
}: typeof batch.$inferSelect): Batch {
  return {
    ...row,
    ending: ending satisfies Ending | null,
    endpoint: row.endpoint as Batch['endpoint'],
    groups: JSON.parse(groups),
    headers: headers === null ? {} : JSON.parse(headers),
    metadata: metadata === null ? null : JSON.parse(metadata),
    errors: errors === null ? null : JSON.parse(errors),
    usage: { inputTokens, cachedTokens, outputTokens, reasoningTokens },
  }
}
