import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { job } from '#db/schema/jobs.ts'
import { response, responseItem, responseLog } from '#db/schema/responses.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { StoredItem } from '#responses/response.ts'
import type { Ending, QueuedResponse } from '#responses/stored.ts'
import {
  insertItems,
  insertResponses,
  insertSegments,
  itemRows,
  keyOf,
  type StoreOptions,
  writeEnding,
} from './row-store.ts'

export type EnqueueOptions = {
  readonly unfinishedMax: number
  /** Adds the job that runs the response. */
  addJob(transaction: Transaction): Promise<void>
}

/** Responses for which one transaction adds jobs. */
const missingJobsMax = 1_000

export function queueTables(
  drizzle: Database['drizzle'],
  options: StoreOptions & { runQuery: QueryRunner },
) {
  const { runQuery } = options
  return {
    enqueue: (queued: QueuedResponse, enqueueOptions: EnqueueOptions) =>
      runQuery(() => enqueue(drizzle, { queued, ...enqueueOptions }, options)),

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
    findQueued: (id: string) => findQueued(drizzle, id),

    /** The encrypted request is deleted, because no other worker runs the response. */
    async claimQueued(id: string, runnerId: string): Promise<boolean> {
      const claimed = await drizzle.execute(sql`
        update ${response} set status = 'in_progress', runner_id = ${runnerId}, request = null
        where id = ${keyOf(id)} and status = 'queued' returning 1`)
      return claimed.length > 0
    },

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
  }
}

async function enqueue(
  drizzle: Database['drizzle'],
  { queued, unfinishedMax, addJob }: EnqueueOptions & { queued: QueuedResponse },
  options: StoreOptions,
): Promise<boolean> {
  const { id, keyId, object, request, segment } = queued
  return drizzle.transaction(async (transaction) => {
    // Serialises the requests of one key, so that they cannot exceed the limit together.
    await transaction.execute(
      sql`select pg_advisory_xact_lock(hashtextextended(${`response queue ${keyId}`}, 0))`,
    )
    const isUnfinished = sql`key_id = ${keyId} and status in ('queued', 'in_progress')`
    if ((await transaction.$count(response, isUnfinished)) >= unfinishedMax) return false
    const row = { head: queued, object, keyId, request, runnerId: null, endedAt: null }
    await insertResponses(transaction, [row], options)
    await insertItems(transaction, itemRows(queued, 'input', queued.input), options.now())
    await insertSegments(transaction, [{ id, segment }])
    await addJob(transaction)
    return true
  })
}

type QueuedRow = {
  id: string
  owner_id: string
  background: boolean
  created_at_ms: number
  previous_response_id: string | null
  conversation_id: string | null
  key_id: string
  request: string
  object: string
  input: string
  segment: string
}

async function findQueued(
  drizzle: Database['drizzle'],
  id: string,
): Promise<QueuedResponse | undefined> {
  const [row] = await drizzle.execute<QueuedRow>(sql`
    select id, owner_id, background, key_id, previous_response_id, conversation_id, object,
      request, (extract(epoch from created_at) * 1000)::float8 as created_at_ms,
      (select '[' || coalesce(string_agg(json, ',' order by position), '') || ']'
        from ${responseItem} where response_id = response.id and direction = 'input') as input,
      (select json_build_object('first', first, 'last', last, 'frames', frames)::text
        from ${responseLog} where response_id = response.id order by first limit 1) as segment
    from ${response} where id = ${keyOf(id)} and status = 'queued'`)
  if (row === undefined) return undefined
  const input: readonly StoredItem[] = JSON.parse(row.input)
  return {
    id: row.id,
    ownerId: row.owner_id,
    background: row.background,
    createdAt: new Date(Math.round(row.created_at_ms)),
    previousResponseId: row.previous_response_id,
    conversationId: row.conversation_id,
    keyId: row.key_id,
    request: row.request,
    object: JSON.parse(row.object),
    segment: JSON.parse(row.segment),
    input,
  }
}
