import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { response, responseItem, responseLog } from '#db/schema/responses.ts'
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

type Drizzle = Database['drizzle']

export function queueTables(drizzle: Drizzle, options: StoreOptions & { ask: QueryRunner }) {
  const { ask } = options
  return {
    enqueue: (queued: QueuedResponse, unfinishedMax: number) =>
      ask(() => enqueue(drizzle, { queued, unfinishedMax }, options)),

    /** For the background: waits as long as it takes. */
    claim: (runnerId: string, countMax: number) => claim(drizzle, runnerId, countMax),

    endQueued: (ownerId: string, id: string, ending: Ending) =>
      ask(() => endQueued(drizzle, { ownerId, id, ending }, options)),
  }
}

async function enqueue(
  drizzle: Drizzle,
  { queued, unfinishedMax }: { queued: QueuedResponse; unfinishedMax: number },
  options: StoreOptions,
): Promise<boolean> {
  const { id, keyId, object, request, segment } = queued
  return drizzle.transaction(async (transaction) => {
    // Two at once would both find the last free place.
    await transaction.execute(
      sql`select pg_advisory_xact_lock(hashtextextended(${`response queue ${keyId}`}, 0))`,
    )
    const isUnfinished = sql`key_id = ${keyId} and status in ('queued', 'in_progress')`
    if ((await transaction.$count(response, isUnfinished)) >= unfinishedMax) return false
    const row = { head: queued, object, keyId, request, runnerId: null, endedAt: null }
    await insertResponses(transaction, [row], options)
    await insertItems(transaction, itemRows(queued, 'input', queued.input), options.now())
    await insertSegments(transaction, [{ id, segment }])
    return true
  })
}

type ClaimedRow = {
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

/** What is claimed needs its sealed request no longer: nobody else will run it. */
async function claim(
  drizzle: Drizzle,
  runnerId: string,
  countMax: number,
): Promise<readonly QueuedResponse[]> {
  const rows = await drizzle.execute<ClaimedRow>(sql`
    with oldest as (
      select id, request from ${response} where status = 'queued'
      order by created_at, id limit ${countMax}::integer
      for update skip locked),
    claimed as (
      update ${response} set status = 'in_progress', runner_id = ${runnerId}, request = null
      from oldest where response.id = oldest.id
      returning response.*, oldest.request as sealed)
    select id, owner_id, background, key_id, previous_response_id, conversation_id, object,
      sealed as request, (extract(epoch from created_at) * 1000)::float8 as created_at_ms,
      (select '[' || coalesce(string_agg(json, ',' order by position), '') || ']'
        from ${responseItem} where response_id = claimed.id and direction = 'input') as input,
      (select json_build_object('first', first, 'last', last, 'frames', frames)::text
        from ${responseLog} where response_id = claimed.id order by first limit 1) as segment
    from claimed order by created_at, id`)
  return rows.map(queuedOf)
}

function queuedOf(row: ClaimedRow): QueuedResponse {
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

async function endQueued(
  drizzle: Drizzle,
  { ownerId, id, ending }: { ownerId: string; id: string; ending: Ending },
  options: StoreOptions,
): Promise<boolean> {
  return drizzle.transaction(async (transaction) => {
    const [locked] = await transaction.execute(sql`
      select id from ${response}
      where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid and status = 'queued'
      for no key update`)
    if (locked === undefined) return false
    await writeEnding(transaction, { id, ownerId }, { ending, ...options })
    return true
  })
}
