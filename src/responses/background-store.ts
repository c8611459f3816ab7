import { type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { job } from '#db/schema/jobs.ts'
import { response, responseItem, responseLog, responseRunner } from '#db/schema/responses.ts'
import {
  idRows,
  insertItems,
  insertResponses,
  insertSegments,
  itemRows,
  keyOf,
  lastInLog,
  readObject,
  responseRow,
  rowTimes,
  type StoreOptions,
  segmentRow,
  writeEnding,
} from './row-store.ts'
import type { Ending, OrphanedResponse, QueuedResponse } from './stored.ts'

/** How long a runner may send no heartbeat: without a connection to the database, and with one. */
export type SilenceLimits = { readonly lostAfterMs: number; readonly frozenMaxMs: number }

const isSilentFor = (ms: number) => sql`runner.seen_at
  < clock_timestamp() - make_interval(secs => ${ms / 1000}::float8)`

/** Responses for which one transaction adds jobs. */
const missingJobsMax = 1_000

/** The queue of background responses, and the responses of dead workers. */
export function backgroundTables(
  drizzle: Database['drizzle'],
  { runQuery, ...options }: StoreOptions & { runQuery: QueryRunner },
) {
  const findInProgress = async (
    condition: SQL,
    countMax: number,
  ): Promise<readonly OrphanedResponse[]> => {
    const rows = await drizzle.execute<{
      id: string
      object: string
      status: string
      last: number
    }>(
      sql`
        select response.id, response.object, response.status, ${lastInLog} as last
        from ${response} left join ${responseRunner} as runner on runner.id = response.runner_id
        where response.status = 'in_progress' and ${condition}
        order by response.created_at limit ${countMax}::integer`,
    )
    return rows.map((row) => ({ id: row.id, object: readObject(row), last: row.last }))
  }
  return {
    /** Stores a queued response with its job; false: the key has `unfinishedMax` unfinished ones. */
    enqueue: (
      queued: QueuedResponse,
      given: { unfinishedMax: number; addJob(transaction: Transaction): Promise<void> },
    ) =>
      runQuery(() =>
        drizzle.transaction(async (transaction) => {
          const { id, keyId, object, request, segment } = queued
          // Serialises the requests of one key, so that they cannot exceed the limit together.
          await transaction.execute(
            sql`select pg_advisory_xact_lock(hashtextextended(${`response queue ${keyId}`}, 0))`,
          )
          const isUnfinished = sql`key_id = ${keyId} and status in ('queued', 'in_progress')`
          const unfinished = await transaction.$count(response, isUnfinished)
          if (unfinished >= given.unfinishedMax) return false
          const times = rowTimes(options)
          const row = responseRow(queued, object, { keyId, request }, times)
          await insertResponses(transaction, [row])
          await insertItems(transaction, itemRows(queued, 'input', queued.input, times))
          await insertSegments(transaction, [segmentRow(id, segment)])
          await given.addJob(transaction)
          return true
        }),
      ),

    /** Ends a response that is still queued; false: it is not. */
    endQueued: (ownerId: string, id: string, ending: Ending) =>
      runQuery(() =>
        drizzle.transaction(async (transaction) => {
          const [locked] = await transaction.execute(sql`
            select id from ${response}
            where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid and status = 'queued'
            for no key update`)
          if (locked === undefined) return false
          await writeEnding(transaction, { id, ownerId }, { ending, ...options })
          return true
        }),
      ),

    // The rest runs in the background and waits for an unavailable database.

    /** Undefined: it is not queued. */
    async findQueued(id: string): Promise<QueuedResponse | undefined> {
      const { ownerId, background, createdAt, previousResponseId, conversationId, object } =
        response
      const [row] = await drizzle
        .select({
          id: response.id,
          ownerId,
          background,
          createdAt,
          previousResponseId,
          conversationId,
          object,
          keyId: sql<string>`key_id`,
          request: sql<string>`request`,
          input: sql<string>`(
            select '[' || coalesce(string_agg(json, ',' order by position), '') || ']'
            from ${responseItem} where response_id = response.id and direction = 'input')`,
          segment: sql<string>`(
            select json_build_object('first', first, 'last', last, 'frames', frames)::text
            from ${responseLog} where response_id = response.id order by first limit 1)`,
        })
        .from(response)
        .where(sql`id = ${keyOf(id)} and status = 'queued'`)
      if (row === undefined) return undefined
      return {
        ...row,
        object: JSON.parse(row.object),
        input: JSON.parse(row.input),
        segment: JSON.parse(row.segment),
      }
    },

    /**
     * Marks a queued response as run by this runner; false: it is not queued. The encrypted request is
     * deleted, because no other worker runs the response.
     */
    async claimQueued(id: string, runnerId: string): Promise<boolean> {
      const claimed = await drizzle.execute(sql`
        update ${response} set status = 'in_progress', runner_id = ${runnerId}, request = null
        where id = ${keyOf(id)} and status = 'queued' returning 1`)
      return claimed.length > 0
    },

    /** Adds jobs for queued responses that have none, as earlier versions left them. */
    addMissingJobs: (
      queue: string,
      addJob: (transaction: Transaction, id: string) => Promise<void>,
    ): Promise<void> =>
      drizzle.transaction(async (transaction) => {
        const rows = await transaction.execute<{ id: string }>(sql`
          select id from ${response} where status = 'queued' and not exists (
            select 1 from ${job} where job.queue = ${queue} and job.key = response.id)
          order by created_at, id limit ${missingJobsMax}::integer`)
        for (const { id } of rows) await addJob(transaction, id)
      }),

    /** Uses the database's clock, because the clocks of replicas may differ. */
    async heartbeat(runnerId: string): Promise<void> {
      await drizzle.execute(sql`
        insert into ${responseRunner} (id, seen_at) values (${runnerId}, clock_timestamp())
        on conflict (id) do update set seen_at = excluded.seen_at`)
    },

    /**
     * Responses in progress whose runner has sent no heartbeat for this long, or never. A runner that
     * is still connected may be suspended, and has more time.
     */
    findOrphans({ lostAfterMs, frozenMaxMs }: SilenceLimits, countMax: number) {
      return findInProgress(
        sql`(runner.seen_at is null or ${isSilentFor(frozenMaxMs)}
          or (${isSilentFor(lostAfterMs)} and not exists (
            select 1 from pg_stat_activity where application_name = runner.id)))`,
        countMax,
      )
    },

    /** Responses in progress of this runner that it does not know. */
    findUntracked: (runner: { id: string; known: readonly string[] }, countMax: number) =>
      findInProgress(
        sql`response.runner_id = ${runner.id} and response.id not in ${idRows(runner.known)}`,
        countMax,
      ),

    /**
     * Ends the open transactions of runners that were suspended for too long: they hold locks, and
     * are rolled back.
     */
    async endTransactions({ frozenMaxMs }: Pick<SilenceLimits, 'frozenMaxMs'>): Promise<void> {
      await drizzle.execute(sql`
        select pg_terminate_backend(session.pid) from pg_stat_activity as session
        join ${responseRunner} as runner on runner.id = session.application_name
        where session.state like 'idle in transaction%' and ${isSilentFor(frozenMaxMs)}`)
    },

    /**
     * Ends a response in progress; false: it is not, or its worker is alive: it holds a lock, or has
     * written frames past `last`.
     */
    endInProgress: (
      { id, last }: Pick<OrphanedResponse, 'id' | 'last'>,
      ending: Ending,
    ): Promise<boolean> =>
      drizzle.transaction(async (transaction) => {
        const [locked] = await transaction.execute<{ ownerId: string }>(sql`
          select response.owner_id as "ownerId" from ${response}
          where response.id = ${keyOf(id)} and response.status = 'in_progress'
          for no key update of response skip locked`)
        if (locked === undefined) return false
        const [log] = await transaction.execute<{ last: number }>(sql`
          select ${lastInLog} as last from ${response} where response.id = ${id}`)
        if (log?.last !== last) return false
        await writeEnding(transaction, { id, ...locked }, { ending, ...options })
        return true
      }),
  }
}
