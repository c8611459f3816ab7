import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { conversation, conversationItem, response } from '#db/schema/responses.ts'
import type { EndedResponse, JournalWork } from '#responses/stored.ts'
import {
  type Handle,
  idRows,
  insertItems,
  insertResponses,
  insertSegments,
  itemRows,
  itemsOf,
  markEnded,
  responseRow,
  type StoreOptions,
} from './row-store.ts'

type ResponseOwner = { readonly ownerId: string; readonly conversationId: string | null }
/** By response id. */
type Owners = ReadonlyMap<string, ResponseOwner>

/**
 * Writes a batch with a constant number of statements. A response that opens and ends in the same
 * batch is written once, in its final state.
 */
export async function writeJournal(
  drizzle: Database['drizzle'],
  work: JournalWork,
  options: StoreOptions,
): Promise<void> {
  const { opened, logged, ended } = work
  if (opened.length + logged.length + ended.length === 0) return
  const now = options.now()
  const added = new Map(opened.map((each): [string, ResponseOwner] => [each.id, each]))
  const existing = [...logged, ...ended].map(({ id }) => id).filter((id) => !added.has(id))
  await drizzle.transaction(async (transaction) => {
    const owners = new Map([...added, ...(await lockRunning(transaction, existing))])
    const ends = ended.filter(({ id }) => owners.has(id))

    const finals = new Map(ended.map(({ id, object }) => [id, object]))
    const rows = opened.map(({ runnerId, ...head }) =>
      responseRow(head, finals.get(head.id) ?? head.object, { runnerId }, options),
    )
    await insertResponses(transaction, rows)
    await insertItems(transaction, [
      ...opened.flatMap((head) => itemRows(head, 'input', head.input, now)),
      ...ends.flatMap(({ id, object }) => {
        const ownerId = owners.get(id)?.ownerId
        return ownerId === undefined ? [] : itemRows({ id, ownerId }, 'output', object.output, now)
      }),
    ])
    const segments = [...logged.filter(({ id }) => owners.has(id)), ...ends]
    await insertSegments(
      transaction,
      segments.flatMap(({ id, segment }) =>
        segment === null ? [] : [{ responseId: id, ...segment }],
      ),
    )
    const endsOfExisting = ends.filter(({ id }) => !added.has(id))
    await markEnded(transaction, endsOfExisting, options)
    await appendToConversations(transaction, withConversation(ends, owners), now)
  })
}

/**
 * Locks those of the responses that are in progress, so that no other worker ends or deletes them
 * during the transaction. The fixed order prevents deadlocks.
 */
async function lockRunning(handle: Handle, ids: readonly string[]): Promise<Owners> {
  if (ids.length === 0) return new Map()
  const rows = await handle.execute<{ id: string; owner: string; conversation: string | null }>(sql`
    select response.id, response.owner_id as owner, response.conversation_id as conversation
    from ${response}
    where response.id in ${idRows([...new Set(ids)])} and response.status = 'in_progress'
    order by response.id for no key update of response`)
  return new Map(
    rows.map((row) => [row.id, { ownerId: row.owner, conversationId: row.conversation }]),
  )
}

/** The responses whose items are appended to a conversation. */
function withConversation(ends: readonly EndedResponse[], owners: Owners) {
  return ends.flatMap(({ id, object: { status } }) => {
    const conversationId = owners.get(id)?.conversationId ?? null
    const isAppended = status === 'completed' || status === 'incomplete'
    return isAppended && conversationId !== null ? [{ id, conversationId }] : []
  })
}

/** The row of a conversation locks its items. Items that it already holds are skipped. */
async function appendToConversations(
  handle: Handle,
  responses: readonly { id: string; conversationId: string }[],
  now: Date,
): Promise<void> {
  if (responses.length === 0) return
  const conversationIds = [...new Set(responses.map(({ conversationId }) => conversationId))]
  // A separate statement, so that the next one sees what was committed during the wait for the lock.
  await handle.execute(sql`
    select id from ${conversation} where id in ${idRows(conversationIds)}
    order by id for no key update`)
  await handle.execute(sql`
    insert into ${conversationItem}
      (conversation_id, position, item_id, owner_id, json, created_at)
    select conversation.id,
      coalesce((select max(taken.position) from ${conversationItem} as taken
        where taken.conversation_id = conversation.id), -1)
      + row_number() over (partition by conversation.id
          order by response.created_at, response.id, item.direction, item.position),
      item.item_id, item.owner_id, item.json, ${now.toISOString()}::timestamptz
    from ${response}
    join ${conversation} on conversation.id = response.conversation_id
      and conversation.owner_id = response.owner_id
    cross join lateral ${itemsOf(sql`response.id`)} as item
    where response.id in ${idRows(responses.map(({ id }) => id))}
    on conflict (conversation_id, item_id) do nothing`)
}
