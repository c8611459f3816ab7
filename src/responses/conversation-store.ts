import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner, type QueryRunner } from '#db/query-runner.ts'
import { conversation, conversationItem } from '#db/schema/responses.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import {
  type Page,
  type PageRequest,
  pageOf,
  type StoredItem,
  unknownCursor,
} from '#responses/response.ts'
import type { Conversation, Metadata } from './conversations.ts'
import { type Handle, idRows, inChunks, keyOf, type StoreOptions } from './row-store.ts'

type Options = StoreOptions & { runQuery: QueryRunner }
type Drizzle = Database['drizzle']
type ConversationKey = { readonly ownerId: string; readonly id: string }

export type { StoreOptions } from './row-store.ts'
export type ConversationDatabase = Pick<Database, 'drizzle'>

export function conversationStore({ drizzle }: ConversationDatabase, given: StoreOptions) {
  const options = { ...given, runQuery: createQueryRunner() }
  const { runQuery } = options
  return {
    add: (ownerId: string, added: Conversation, items: readonly StoredItem[]) =>
      runQuery(() => addConversation(drizzle, { ownerId, added, items }, options)),

    find: (ownerId: string, id: string) =>
      runQuery(async () => {
        const [row] = await drizzle.execute<ConversationRow>(sql`
          select ${columns} from ${conversation} where ${matches({ ownerId, id })}`)
        return row === undefined ? undefined : conversationOf(row)
      }),

    setMetadata: (ownerId: string, id: string, metadata: Metadata) =>
      runQuery(async () => {
        const [row] = await drizzle.execute<ConversationRow>(sql`
          update ${conversation} set metadata = ${JSON.stringify(metadata)}
          where ${matches({ ownerId, id })} returning ${columns}`)
        return row === undefined ? undefined : conversationOf(row)
      }),

    remove: (ownerId: string, id: string) =>
      runQuery(async () => {
        const removed = await drizzle.execute(sql`
          delete from ${conversation} where ${matches({ ownerId, id })} returning 1`)
        return removed.length > 0
      }),

    items: (ownerId: string, id: string) =>
      runQuery(() => readItems(drizzle, { ownerId, id }, options.limits)),

    ...itemTables(drizzle, options),
  }
}

function itemTables(drizzle: Drizzle, options: Options) {
  const { runQuery } = options
  return {
    addItems: (ownerId: string, id: string, items: readonly StoredItem[]) =>
      runQuery(() => addItems(drizzle, { key: { ownerId, id }, items }, options)),

    listItems: (ownerId: string, id: string, page: PageRequest) =>
      runQuery(() => listItems(drizzle, { key: { ownerId, id }, page }, options.limits)),

    findItem: (ownerId: string, id: string, itemId: string) =>
      runQuery(async (): Promise<StoredItem | undefined> => {
        const [row] = await drizzle.execute<{ json: string }>(sql`
          select json from ${conversationItem} where ${matchesItem({ ownerId, id }, itemId)}`)
        return row === undefined ? undefined : JSON.parse(row.json)
      }),

    removeItem: (ownerId: string, id: string, itemId: string) =>
      runQuery(async () => {
        const removed = await drizzle.execute(sql`
          delete from ${conversationItem} where ${matchesItem({ ownerId, id }, itemId)} returning 1`)
        return removed.length > 0
      }),
  }
}

type ConversationRow = { id: string; metadata: string; created_at_ms: number }

const columns = sql`id, metadata, (extract(epoch from created_at) * 1000)::float8 as created_at_ms`

function conversationOf(row: ConversationRow): Conversation {
  return {
    id: row.id,
    metadata: JSON.parse(row.metadata),
    createdAt: new Date(Math.round(row.created_at_ms)),
  }
}

function matches({ ownerId, id }: ConversationKey) {
  return sql`id = ${keyOf(id)} and owner_id = ${ownerId}::uuid`
}

function matchesItem({ ownerId, id }: ConversationKey, itemId: string) {
  return sql`conversation_id = ${keyOf(id)} and item_id = ${keyOf(itemId)}
    and owner_id = ${ownerId}::uuid`
}

async function addConversation(
  drizzle: Drizzle,
  given: { ownerId: string; added: Conversation; items: readonly StoredItem[] },
  { now }: Options,
): Promise<void> {
  const { ownerId, items } = given
  const { id, metadata, createdAt } = given.added
  await drizzle.transaction(async (transaction) => {
    await transaction.execute(sql`
      insert into ${conversation} (id, owner_id, metadata, created_at) values (${id},
        ${ownerId}::uuid, ${JSON.stringify(metadata)}, ${createdAt.toISOString()}::timestamptz)`)
    const kept = withUniqueIds(items, new Set())
    await insertItems(transaction, { key: { ownerId, id }, items: kept, from: 0 }, now())
  })
}

async function addItems(
  drizzle: Drizzle,
  { key, items }: { key: ConversationKey; items: readonly StoredItem[] },
  { limits, now }: Options,
): Promise<readonly StoredItem[] | undefined> {
  return drizzle.transaction(async (transaction) => {
    // The row locks the items.
    const [locked] = await transaction.execute(sql`
      select id from ${conversation} where ${matches(key)} for no key update`)
    if (locked === undefined) return undefined
    const { count, bytes, next } = await measure(transaction, key.id)
    const isFull = count + items.length > limits.conversationItemsMax
    if (isFull || bytes > limits.storedCharsMax) throw full(limits, 'items')
    const kept = withUniqueIds(items, await findTaken(transaction, key.id, items))
    await insertItems(transaction, { key, items: kept, from: next }, now())
    return kept
  })
}

type Measures = { count: number; bytes: number; next: number }

async function measure(handle: Handle, id: string): Promise<Measures> {
  const [row] = await handle.execute<Measures>(sql`
    select count(*)::integer as count, coalesce(max(position), -1) + 1 as next,
      coalesce(sum(octet_length(json)), 0)::float8 as bytes
    from ${conversationItem} where conversation_id = ${id}`)
  return row ?? { count: 0, bytes: 0, next: 0 }
}

async function findTaken(
  handle: Handle,
  id: string,
  items: readonly StoredItem[],
): Promise<Set<string>> {
  const rows = await handle.execute<{ item_id: string }>(sql`
    select item_id from ${conversationItem} where conversation_id = ${id}
      and item_id in ${idRows(items.map((item) => keyOf(item.id)))}`)
  return new Set(rows.map((row) => row.item_id))
}

async function insertItems(
  handle: Handle,
  { key, items, from }: { key: ConversationKey; items: readonly StoredItem[]; from: number },
  now: Date,
): Promise<void> {
  const rows = items.map((item, index) => ({
    position: from + index,
    item_id: keyOf(item.id),
    json: JSON.stringify(item),
  }))
  await inChunks(rows, async (json) => {
    await handle.execute(sql`
      insert into ${conversationItem}
        (conversation_id, owner_id, created_at, position, item_id, json)
      select ${key.id}, ${key.ownerId}::uuid, ${now.toISOString()}::timestamptz, given.*
      from json_to_recordset(${json}::json)
        as given(position integer, item_id text, json text)`)
  })
}

async function readItems(
  drizzle: Drizzle,
  key: ConversationKey,
  limits: StoreOptions['limits'],
): Promise<readonly StoredItem[] | undefined> {
  const [found] = await drizzle.execute(sql`select id from ${conversation} where ${matches(key)}`)
  if (found === undefined) return undefined
  const { count, bytes } = await measure(drizzle, key.id)
  if (count >= limits.conversationItemsMax || bytes > limits.storedCharsMax) {
    throw full(limits, 'conversation')
  }
  const [row] = await drizzle.execute<{ items: string }>(sql`
    select '[' || coalesce(string_agg(json, ',' order by position), '') || ']' as items
    from ${conversationItem} where conversation_id = ${key.id}`)
  return JSON.parse(row?.items ?? '[]')
}

function full(limits: StoreOptions['limits'], param: string): AppError {
  const { conversationItemsMax, storedCharsMax } = limits
  return new AppError(
    'invalid_request',
    `The conversation is full: it may hold ${conversationItemsMax} items and ${storedCharsMax} bytes. Delete items or start another conversation.`,
    { code: 'conversation_full', param },
  )
}

type ListedRow = { is_cursor: boolean; is_item: boolean; json: string | null }

async function listItems(
  drizzle: Drizzle,
  { key, page }: { key: ConversationKey; page: PageRequest },
  { storedCharsMax }: StoreOptions['limits'],
): Promise<Page<StoredItem> | undefined> {
  const isAscending = page.order === 'asc'
  const isAfter = isAscending ? sql`position > cursor.at` : sql`position < cursor.at`
  const inOrder = isAscending ? sql`position` : sql`position desc`
  const rows = await drizzle.execute<ListedRow>(sql`
    with cursor as (
      select (select position from ${conversationItem}
        where conversation_id = conversation.id and item_id = ${keyOf(page.after ?? '')}) as at
      from ${conversation} where ${matches(key)}),
    paged as (
      select position, json from ${conversationItem}, cursor
      where conversation_id = ${keyOf(key.id)}
        and ${page.after === null ? sql`true` : isAfter}
      order by ${inOrder} limit ${page.limit + 1}::integer),
    measured as (
      select *, sum(octet_length(json)) over (order by ${inOrder}) - octet_length(json) as before
      from paged)
    select cursor.at is not null as is_cursor, position is not null as is_item,
      case when before < ${storedCharsMax}::bigint then json end as json
    from cursor left join measured on true order by ${inOrder}`)
  const [first] = rows
  if (first === undefined) return undefined
  if (page.after !== null && !first.is_cursor) throw unknownCursor()
  return pageOf(
    rows.flatMap(({ is_item, json }) => (is_item ? [json] : [])),
    page,
  )
}

/** Replaces ids that the conversation already holds by new ones with the same prefix. */
function withUniqueIds(items: readonly StoredItem[], taken: Set<string>): readonly StoredItem[] {
  return items.map((item) => {
    const isTaken = taken.has(keyOf(item.id))
    const id = isTaken ? newId(/^[a-z]+_/.exec(item.id)?.[0] ?? 'item_') : item.id
    taken.add(keyOf(id))
    return { ...item, id }
  })
}
