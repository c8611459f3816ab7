import { type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { rowsOf } from '#db/json-rows.ts'
import { conversationItem, response, responseItem, responseLog } from '#db/schema/responses.ts'
import { AppError } from '#lib/errors.ts'
import {
  isTerminal,
  type Page,
  type PageRequest,
  type ResponseObject,
  type StoredItem,
} from './response.ts'
import type { Ending, ResponseHead } from './stored.ts'

/** The database or a transaction. */
export type Handle = Pick<Database['drizzle'], 'execute'>

export type StoreOptions = {
  limits: Omit<Config['responses'], 'ttlS'>
  /** How long a response is kept: a setting of administrators, read at each use. */
  ttlS: () => number
  now: () => Date
}

/**
 * A statement takes its rows as one JSON text, so that it is the same for any number of rows. Longer
 * texts save no time (measured) and cost the embedded engine memory that it never frees.
 */
const rowsPerStatement = 2_000
export const charsPerStatement = 1024 * 1024

/** The rows as JSON arrays of the maximum size of a statement; none for no rows. */
export function chunksOf(rows: readonly object[]): string[] {
  const chunks: string[] = []
  let chunk: string[] = []
  let chars = 0
  const close = () => chunks.push(`[${chunk.join(',')}]`)
  for (const row of rows) {
    const json = JSON.stringify(row)
    if (
      chunk.length === rowsPerStatement ||
      (chars > 0 && chars + json.length > charsPerStatement)
    ) {
      close()
      chunk = []
      chars = 0
    }
    chunk.push(json)
    chars += json.length
  }
  if (chunk.length > 0) close()
  return chunks
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

/** Inserts rows into a table. Existing rows stay unchanged, so that a write can be repeated. */
function insertInto<Table extends PgTable>(table: Table) {
  const { columns, given } = rowsOf(table)
  return async (handle: Handle, rows: readonly Table['$inferInsert'][]) => {
    for (const json of chunksOf(rows)) {
      await handle.execute(sql`
        insert into ${table} (${columns}) select * from ${given(json)} on conflict do nothing`)
    }
  }
}

export const insertResponses = insertInto(response)
export const insertItems = insertInto(responseItem)
export const insertSegments = insertInto(responseLog)
export const insertConversationItems = insertInto(conversationItem)

/** `own`: the columns of a queued response, or of one that a worker runs. */
export function responseRow(
  head: ResponseHead,
  object: ResponseObject,
  own: Pick<typeof response.$inferInsert, 'keyId' | 'request' | 'runnerId'>,
  options: StoreOptions,
): typeof response.$inferInsert {
  const { id, ownerId, background, createdAt, previousResponseId, conversationId } = head
  const { status } = object
  return {
    id,
    ownerId,
    status,
    background,
    createdAt,
    previousResponseId,
    conversationId,
    ...own,
    object: objectText(object),
    expiresAt: after(options.now(), options.ttlS()),
    ...(isTerminal(status) ? endColumns(object, options) : {}),
  }
}

export function itemRows(
  { id, ownerId }: Pick<ResponseHead, 'id' | 'ownerId'>,
  direction: 'input' | 'output',
  items: readonly StoredItem[],
  createdAt: Date,
): (typeof responseItem.$inferInsert)[] {
  return items.map((item, position) => ({
    responseId: id,
    direction,
    position,
    itemId: keyOf(item.id),
    ownerId,
    json: JSON.stringify(item),
    createdAt,
  }))
}

/** Updates the row of an ended response, without its output, log and conversation. */
async function markEnded(
  handle: Handle,
  id: string,
  { ending: { object }, ...options }: StoreOptions & { ending: Ending },
): Promise<void> {
  const ended = endColumns(object, options)
  await handle.execute(sql`
    update ${response} set status = ${ended.status}, object = ${ended.object}, request = null,
      ended_at = ${ended.endedAt.toISOString()}::timestamptz,
      expires_at = ${ended.expiresAt.toISOString()}::timestamptz,
      log_expires_at = ${ended.logExpiresAt.toISOString()}::timestamptz
    where response.id = ${id}`)
}

export function endColumns(object: ResponseObject, { limits, ttlS, now }: StoreOptions) {
  const endedAt = now()
  return {
    status: object.status,
    object: objectText(object),
    endedAt,
    expiresAt: after(endedAt, ttlS()),
    logExpiresAt: after(endedAt, limits.streamTtlS),
  }
}

/** Writes the end of one response with output and log. The caller has locked its row. */
export async function writeEnding(
  handle: Handle,
  { id, ownerId }: Pick<ResponseHead, 'id' | 'ownerId'>,
  options: StoreOptions & { ending: Ending },
): Promise<void> {
  const { object, segment } = options.ending
  if (segment !== null) await insertSegments(handle, [{ responseId: id, ...segment }])
  await insertItems(handle, itemRows({ id, ownerId }, 'output', object.output, options.now()))
  await markEnded(handle, id, options)
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

type ListedRow = { is_found: boolean; is_cursor: boolean; is_item: boolean; json: string | null }

/**
 * Reads a page of the query `listed` (item_id, json, place); undefined unless `found` holds. The page
 * ends early before an item that would exceed the size limit. Throws `invalid_request` if `after`
 * is not in the list.
 */
export async function readPage(
  handle: Handle,
  { queries, found }: { queries: SQL; found: SQL },
  { after: cursor, limit, order }: PageRequest,
  charsMax: number,
): Promise<Page<StoredItem> | undefined> {
  const isAscending = order === 'asc'
  const last = isAscending ? sql`max(place)` : sql`min(place)`
  const isAfter = isAscending ? sql`place > cursor.at` : sql`place < cursor.at`
  const inOrder = isAscending ? sql`place` : sql`place desc`
  const rows = await handle.execute<ListedRow>(sql`
    with ${queries},
    cursor as (select ${last} as at from listed where item_id = ${keyOf(cursor ?? '')}),
    paged as (
      select place, json from listed, cursor where ${cursor === null ? sql`true` : isAfter}
      order by ${inOrder} limit ${limit + 1}::integer),
    measured as (
      select *, sum(octet_length(json)) over (order by ${inOrder}) - octet_length(json) as before
      from paged)
    select ${found} as is_found, cursor.at is not null as is_cursor, place is not null as is_item,
      case when before < ${charsMax}::bigint then json end as json
    from cursor left join measured on true order by ${inOrder}`)
  const [first] = rows
  if (first === undefined || !first.is_found) return undefined
  if (cursor !== null && !first.is_cursor) {
    throw new AppError('invalid_request', 'after must be the id of an item of this list.', {
      param: 'after',
    })
  }
  const texts = rows.flatMap(({ is_item, json }) => (is_item ? [json] : []))
  const data: StoredItem[] = []
  for (const text of texts.slice(0, limit)) {
    if (text === null) break
    data.push(JSON.parse(text))
  }
  return { data, hasMore: texts.length > data.length }
}
