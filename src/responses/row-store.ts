import { type SQL, sql } from 'drizzle-orm'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { response, responseItem, responseLog } from '#db/schema/responses.ts'
import type { ResponseObject, StoredItem } from '#responses/response.ts'
import type { Ending, LogSegment, ResponseHead } from '#responses/stored.ts'

/** The database or a transaction. */
export type Handle = Pick<Database['drizzle'], 'execute'>

export type StoreOptions = {
  limits: Omit<Config['responses'], 'ttlS'>
  /** How long a response is kept: a setting of administrators, read at each use. */
  ttlS: () => number
  now: () => Date
}

export type ResponseRow = {
  head: ResponseHead
  object: ResponseObject
  keyId: string | null
  runnerId: string | null
  request: string | null
  endedAt: Date | null
}

export type ItemRow = {
  responseId: string
  ownerId: string
  direction: 'input' | 'output'
  position: number
  item: StoredItem
}

/**
 * A statement takes its rows as one JSON text, so that it is the same for any number of rows. Longer
 * texts save no time (measured) and cost the embedded engine memory that it never frees.
 */
const rowsPerStatement = 2_000
const charsPerStatement = 1024 * 1024

/** Calls `run` with the rows in chunks of the maximum size of a statement. */
export async function inChunks<T extends object>(
  rows: readonly T[],
  run: (rowsJson: string) => Promise<void>,
): Promise<void> {
  let chunk: string[] = []
  let chars = 0
  for (const row of rows) {
    const json = JSON.stringify(row)
    if (
      chunk.length === rowsPerStatement ||
      (chars > 0 && chars + json.length > charsPerStatement)
    ) {
      await run(`[${chunk.join(',')}]`)
      chunk = []
      chars = 0
    }
    chunk.push(json)
    chars += json.length
  }
  if (chunk.length > 0) await run(`[${chunk.join(',')}]`)
}

const idCharsMax = 128

/**
 * An id as a column value. Ids that a client made up and that no text column or index accepts are
 * replaced by a hash.
 */
export function keyOf(id: string): string {
  if (id.length <= idCharsMax && id.isWellFormed() && !id.includes('\0')) return id
  return `sha256:${new Bun.CryptoHasher('sha256').update(JSON.stringify(id)).digest('hex')}`
}

/** Ids as rows of a statement: `join (…) as wanted on wanted.id = …`. */
export function idRows(ids: readonly string[]): SQL {
  return sql`(select value as id from json_array_elements_text(${JSON.stringify(ids)}::json))`
}

/**
 * The items of one response, for a lateral join. `offset 0` forces an index scan per response:
 * without statistics, as in the embedded database, a plain join becomes a scan of all items.
 */
export function itemsOf(responseId: SQL): SQL {
  return sql`(select * from ${responseItem} where response_id = ${responseId} offset 0)`
}

/** Existing rows stay unchanged, so that a write can be repeated. */
export async function insertResponses(
  handle: Handle,
  rows: readonly ResponseRow[],
  { limits, ttlS, now }: StoreOptions,
): Promise<void> {
  const given = rows.map(({ head, object, endedAt, ...row }) => ({
    id: head.id,
    owner_id: head.ownerId,
    status: object.status,
    background: head.background,
    key_id: row.keyId,
    previous_response_id: head.previousResponseId,
    conversation_id: head.conversationId,
    runner_id: row.runnerId,
    object: objectText(object),
    request: row.request,
    created_at: head.createdAt,
    expires_at: after(endedAt ?? now(), ttlS()),
    ended_at: endedAt,
    log_expires_at: endedAt === null ? null : after(endedAt, limits.streamTtlS),
  }))
  await inChunks(given, async (json) => {
    await handle.execute(sql`
      insert into ${response} (id, owner_id, status, background, key_id, previous_response_id,
        conversation_id, runner_id, object, request, created_at, expires_at, ended_at, log_expires_at)
      select * from json_to_recordset(${json}::json) as given(id text, owner_id uuid, status text,
        background boolean, key_id text, previous_response_id text, conversation_id text,
        runner_id text, object text, request text, created_at timestamptz, expires_at timestamptz,
        ended_at timestamptz, log_expires_at timestamptz)
      on conflict do nothing`)
  })
}

export async function insertItems(
  handle: Handle,
  rows: readonly ItemRow[],
  now: Date,
): Promise<void> {
  const given = rows.map(({ responseId, ownerId, direction, position, item }) => ({
    response_id: responseId,
    direction,
    position,
    item_id: keyOf(item.id),
    owner_id: ownerId,
    json: JSON.stringify(item),
  }))
  await inChunks(given, async (json) => {
    await handle.execute(sql`
      insert into ${responseItem}
        (response_id, direction, position, item_id, owner_id, json, created_at)
      select given.*, ${now.toISOString()}::timestamptz
      from json_to_recordset(${json}::json) as given(response_id text, direction text,
        position integer, item_id text, owner_id uuid, json text)
      on conflict do nothing`)
  })
}

export async function insertSegments(
  handle: Handle,
  segments: readonly { id: string; segment: LogSegment }[],
): Promise<void> {
  const given = segments.map(({ id, segment }) => ({ response_id: id, ...segment }))
  await inChunks(given, async (json) => {
    await handle.execute(sql`
      insert into ${responseLog} (response_id, first, last, frames)
      select * from json_to_recordset(${json}::json)
        as given(response_id text, first integer, last integer, frames text)
      on conflict do nothing`)
  })
}

export function itemRows(
  { id, ownerId }: Pick<ResponseHead, 'id' | 'ownerId'>,
  direction: ItemRow['direction'],
  items: readonly StoredItem[],
): ItemRow[] {
  return items.map((item, position) => ({ responseId: id, ownerId, direction, position, item }))
}

/** Updates the rows of ended responses, without their output, log and conversation. */
export async function markEnded(
  handle: Handle,
  ended: readonly { id: string; object: ResponseObject }[],
  { limits, ttlS, now }: StoreOptions,
): Promise<void> {
  const endedAt = now()
  const given = ended.map(({ id, object }) => ({
    id,
    status: object.status,
    object: objectText(object),
    ended_at: endedAt,
    expires_at: after(endedAt, ttlS()),
    log_expires_at: after(endedAt, limits.streamTtlS),
  }))
  await inChunks(given, async (json) => {
    await handle.execute(sql`
      update ${response} set status = given.status, object = given.object, request = null,
        ended_at = given.ended_at, expires_at = given.expires_at,
        log_expires_at = given.log_expires_at
      from json_to_recordset(${json}::json) as given(id text, status text, object text,
        ended_at timestamptz, expires_at timestamptz, log_expires_at timestamptz)
      where response.id = given.id`)
  })
}

/** Writes the end of one response with output and log. The caller has locked its row. */
export async function writeEnding(
  handle: Handle,
  { id, ownerId }: Pick<ResponseHead, 'id' | 'ownerId'>,
  { ending: { object, segment }, ...options }: StoreOptions & { ending: Ending },
): Promise<void> {
  if (segment !== null) await insertSegments(handle, [{ id, segment }])
  await insertItems(handle, itemRows({ id, ownerId }, 'output', object.output), options.now())
  await markEnded(handle, [{ id, object }], options)
}

function objectText(object: ResponseObject): string {
  return JSON.stringify({ ...object, output: [] })
}

/** Builds the object from its columns; `output` is a JSON array. */
export function readObject(row: { object: string; status: string; output?: string }) {
  const output: readonly StoredItem[] = JSON.parse(row.output ?? '[]')
  return { ...JSON.parse(row.object), status: row.status, output } as ResponseObject
}

/** True for a response that has not expired, even if an expired one has not been swept yet. */
export function isKept(now: Date): SQL {
  return sql`(response.expires_at > ${now.toISOString()}::timestamptz
    or response.status = 'in_progress')`
}

/** The last sequence number in the log of `response`; -1 for an empty log. */
export const lastInLog = sql`coalesce((select segment.last from ${responseLog} as segment
  where segment.response_id = response.id order by segment.first desc limit 1), -1)`

function after(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000)
}
