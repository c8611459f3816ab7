import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { conversation, conversationItem } from '#db/schema/responses.ts'
import { assert } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { PageRequest, StoredItem } from './response.ts'
import {
  type Handle,
  idRows,
  insertConversationItems,
  keyOf,
  readPage,
  rowText,
  type StoreOptions,
} from './row-store.ts'

export type Metadata = Readonly<Record<string, string>>

export type Conversation = {
  readonly id: string
  readonly createdAt: Date
  readonly metadata: Metadata
}

export type Conversations = ReturnType<typeof createConversations>

/**
 * Conversations and their items. A conversation of another owner does not exist: the result is
 * undefined or false. An unavailable database fails fast with `service_unavailable`.
 */
export function createConversations(
  { drizzle }: Pick<Database, 'drizzle'>,
  { limits, now }: StoreOptions,
) {
  const runQuery = createQueryRunner()
  return {
    create: (
      ownerId: string,
      { metadata, items }: { metadata: Metadata; items: readonly StoredItem[] },
    ) =>
      runQuery(async (): Promise<Conversation> => {
        const created = { id: newId('conv_'), createdAt: now(), metadata }
        await drizzle.transaction(async (transaction) => {
          await transaction.insert(conversation).values({
            ...created,
            ownerId,
            metadata: JSON.stringify(metadata),
          })
          const rows = itemRows({ ownerId, id: created.id }, withUniqueIds(items, new Set()), 0)
          await insertConversationItems(transaction, rows)
        })
        return created
      }),

    find: (ownerId: string, id: string) =>
      runQuery(async () => {
        const [row] = await drizzle.select().from(conversation).where(matches({ ownerId, id }))
        return row && conversationOf(row)
      }),

    setMetadata: (ownerId: string, id: string, metadata: Metadata) =>
      runQuery(async () => {
        const [row] = await drizzle
          .update(conversation)
          .set({ metadata: JSON.stringify(metadata) })
          .where(matches({ ownerId, id }))
          .returning()
        return row && conversationOf(row)
      }),

    /** Deletes its items too; its responses stay. */
    remove: (ownerId: string, id: string) =>
      runQuery(async () => {
        const removed = await drizzle.execute(sql`
          delete from ${conversation} where ${matches({ ownerId, id })} returning 1`)
        return removed.length > 0
      }),

    /**
     * All items, oldest first, as context of a generation. Throws `invalid_request` with the code
     * `conversation_full` if no items can be added.
     */
    items: (ownerId: string, id: string) =>
      runQuery(async (): Promise<readonly StoredItem[] | undefined> => {
        if ((await drizzle.$count(conversation, matches({ ownerId, id }))) === 0) return undefined
        const { count, bytes } = await measure(drizzle, id)
        if (count >= limits.conversationItemsMax || bytes > limits.storedCharsMax) {
          throw full(limits, 'conversation')
        }
        const [row] = await drizzle.execute<{ items: string }>(sql`
          select '[' || coalesce(string_agg(json, ',' order by position), '') || ']' as items
          from ${conversationItem} where conversation_id = ${id}`)
        assert(row, 'an aggregate has one row')
        return JSON.parse(row.items)
      }),

    /**
     * Appends items and returns them as stored: an item whose id the conversation already holds gets
     * a new one. Throws `invalid_request` with the code `conversation_full`.
     */
    addItems: (ownerId: string, id: string, items: readonly StoredItem[]) =>
      runQuery(() =>
        drizzle.transaction(async (transaction) => {
          // The row locks the items.
          const [locked] = await transaction.execute(sql`
            select id from ${conversation} where ${matches({ ownerId, id })} for no key update`)
          if (locked === undefined) return undefined
          const { count, bytes, next } = await measure(transaction, id)
          const isFull = count + items.length > limits.conversationItemsMax
          if (isFull || bytes > limits.storedCharsMax) throw full(limits, 'items')
          const kept = withUniqueIds(items, await findTaken(transaction, id, items))
          await insertConversationItems(transaction, itemRows({ ownerId, id }, kept, next))
          return kept
        }),
      ),

    /** Throws `invalid_request` if `after` is not an item of the conversation. */
    listItems: (ownerId: string, id: string, page: PageRequest) => {
      const queries = sql`listed as not materialized (
        select item_id, json, position as place from ${conversationItem}
        where conversation_id = ${keyOf(id)} and owner_id = ${ownerId}::uuid)`
      const found = sql`exists (select 1 from ${conversation} where ${matches({ ownerId, id })})`
      return runQuery(() => readPage(drizzle, { queries, found }, page, limits.storedCharsMax))
    },

    findItem: (ownerId: string, id: string, itemId: string) =>
      runQuery(async (): Promise<StoredItem | undefined> => {
        const [row] = await drizzle.execute<{ json: string }>(sql`
          select json from ${conversationItem} where ${matchesItem({ ownerId, id }, itemId)}`)
        return row && JSON.parse(row.json)
      }),

    removeItem: (ownerId: string, id: string, itemId: string) =>
      runQuery(async () => {
        const removed = await drizzle.execute(sql`
          delete from ${conversationItem} where ${matchesItem({ ownerId, id }, itemId)} returning 1`)
        return removed.length > 0
      }),
  }

  function itemRows({ ownerId, id }: ConversationKey, items: readonly StoredItem[], from: number) {
    const createdAt = now().toISOString()
    return items.map((item, index) => {
      const place = { conversationId: id, position: from + index, itemId: keyOf(item.id) }
      return rowText({ ...place, ownerId, createdAt }, 'json', JSON.stringify(item))
    })
  }
}

type ConversationKey = { readonly ownerId: string; readonly id: string }

function conversationOf(row: typeof conversation.$inferSelect): Conversation {
  const { id, createdAt, metadata } = row
  return { id, createdAt, metadata: JSON.parse(metadata) }
}

function matches({ ownerId, id }: ConversationKey) {
  return sql`id = ${keyOf(id)} and owner_id = ${ownerId}::uuid`
}

function matchesItem({ ownerId, id }: ConversationKey, itemId: string) {
  return sql`conversation_id = ${keyOf(id)} and item_id = ${keyOf(itemId)}
    and owner_id = ${ownerId}::uuid`
}

type Measures = { count: number; bytes: number; next: number }

async function measure(handle: Handle, id: string): Promise<Measures> {
  const [row] = await handle.execute<Measures>(sql`
    select count(*)::integer as count, coalesce(max(position), -1) + 1 as next,
      coalesce(sum(octet_length(json)), 0)::float8 as bytes
    from ${conversationItem} where conversation_id = ${id}`)
  assert(row, 'an aggregate has one row')
  return row
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

function full(limits: StoreOptions['limits'], param: string): AppError {
  const { conversationItemsMax, storedCharsMax } = limits
  return new AppError(
    'invalid_request',
    `The conversation is full: it may hold ${conversationItemsMax} items and ${storedCharsMax} bytes. Delete items or start another conversation.`,
    { code: 'conversation_full', param },
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
