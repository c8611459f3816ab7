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
import type { Ending, LogSegment, ResponseHead } from './stored.ts'

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

/**
 * A row as JSON, with a column that holds JSON text. The text becomes a part of the row, since
 * escaping it as a string costs more than all other columns. PostgreSQL reads it back unchanged, but
 * refuses JSON with some escapes, of NUL and of lone surrogates: such a text stays a string.
 */
export function rowText(columns: object, jsonColumn: string, json: string): string {
  const value = json.includes('\\u') ? JSON.stringify(json) : json
  return `${JSON.stringify(columns).slice(0, -1)},"${jsonColumn}":${value}}`
}

/** Rows as JSON arrays of the maximum size of a statement; none for no rows. */
export function chunksOf(rows: readonly string[]): string[] {
  const chunks: string[] = []
  // Joined once: a long text that is copied again costs more than its rows.
  let parts: string[] = []
  let chars = 0
  const close = () => chunks.push([...parts, ']'].join(''))
  for (const json of rows) {
    const isFull = parts.length === 2 * rowsPerStatement || chars + json.length > charsPerStatement
    if (isFull && parts.length > 0) {
      close()
      parts = []
      chars = 0
    }
    parts.push(parts.length === 0 ? '[' : ',', json)
    chars += json.length
  }
  if (parts.length > 0) close()
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
function insertInto(table: PgTable) {
  const { columns, given } = rowsOf(table)
  return async (handle: Handle, rows: readonly string[]) => {
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
  { writtenAt, expiresAt, logExpiresAt }: RowTimes,
): string {
  const { id, ownerId, background, previousResponseId, conversationId } = head
  const { status } = object
  const isEnded = isTerminal(status)
  const columns = {
    id,
    ownerId,
    background,
    createdAt: head.createdAt.toISOString(),
    previousResponseId,
    conversationId,
    ...own,
    webhookDue: background,
    status,
    expiresAt,
    endedAt: isEnded ? writtenAt : null,
    logExpiresAt: isEnded ? logExpiresAt : null,
  }
  return rowText(columns, 'object', objectText(object))
}

export function itemRows(
  { id, ownerId }: Pick<ResponseHead, 'id' | 'ownerId'>,
  direction: 'input' | 'output',
  items: readonly StoredItem[],
  { writtenAt: createdAt }: RowTimes,
): string[] {
  return items.map((item, position) => {
    const itemId = keyOf(item.id)
    const columns = { responseId: id, direction, position, itemId, ownerId, createdAt }
    return rowText(columns, 'json', JSON.stringify(item))
  })
}

export function segmentRow(responseId: string, segment: LogSegment): string {
  return JSON.stringify({ responseId, ...segment } satisfies typeof responseLog.$inferInsert)
}

/** For the statement that ends responses which have a row. */
export function endRow(id: string, object: ResponseObject, times: RowTimes): string {
  const { writtenAt: endedAt, expiresAt, logExpiresAt } = times
  const columns = { id, status: object.status, endedAt, expiresAt, logExpiresAt }
  return rowText(columns, 'object', objectText(object))
}

/** Updates the row of an ended response, without its output, log and conversation. */
async function markEnded(
  handle: Handle,
  { id, object, times }: { id: string; object: ResponseObject; times: RowTimes },
): Promise<void> {
  const { writtenAt, expiresAt, logExpiresAt } = times
  await handle.execute(sql`
    update ${response} set status = ${object.status}, object = ${objectText(object)}, request = null,
      ended_at = ${writtenAt}::timestamptz, expires_at = ${expiresAt}::timestamptz,
      log_expires_at = ${logExpiresAt}::timestamptz
    where response.id = ${id}`)
}

/** Of the rows of one write, as text: a date in a row makes `JSON.stringify` several times slower. */
export type RowTimes = ReturnType<typeof rowTimes>

export function rowTimes({ limits, ttlS, now }: StoreOptions) {
  const writtenAt = now()
  return {
    writtenAt: writtenAt.toISOString(),
    expiresAt: after(writtenAt, ttlS()).toISOString(),
    logExpiresAt: after(writtenAt, limits.streamTtlS).toISOString(),
  }
}

/** Writes the end of one response with output and log. The caller has locked its row. */
export async function writeEnding(
  handle: Handle,
  { id, ownerId }: Pick<ResponseHead, 'id' | 'ownerId'>,
  options: StoreOptions & { ending: Ending },
): Promise<void> {
  const { object, segment } = options.ending
  const times = rowTimes(options)
  if (segment !== null) await insertSegments(handle, [segmentRow(id, segment)])
  await insertItems(handle, itemRows({ id, ownerId }, 'output', object.output, times))
  await markEnded(handle, { id, object, times })
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
