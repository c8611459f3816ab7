import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { conversation, conversationItem, response } from '#db/schema/responses.ts'
import { isOver } from '#responses/response.ts'
import type { EndedResponse, JournalWork } from '#responses/stored.ts'
import {
  type Handle,
  type ItemRow,
  idRows,
  insertItems,
  insertResponses,
  insertSegments,
  itemRows,
  itemsOf,
  markEnded,
  type ResponseRow,
  type StoreOptions,
} from './row-store.ts'

/** Whose a response is, and the conversation that it belongs to. */
type Place = { readonly ownerId: string; readonly conversationId: string | null }
type Places = ReadonlyMap<string, Place>

/**
 * Writes what running responses have gathered: few statements, however many they are. A response
 * that opens and ends in the same work is written once, in its final state.
 */
export async function writeJournal(
  drizzle: Database['drizzle'],
  work: JournalWork,
  options: StoreOptions,
): Promise<void> {
  const { opened, logged, ended } = work
  if (opened.length + logged.length + ended.length === 0) return
  const now = options.now()
  const fresh = new Map(opened.map((each): [string, Place] => [each.id, each]))
  const touched = [...logged, ...ended].map(({ id }) => id).filter((id) => !fresh.has(id))
  await drizzle.transaction(async (transaction) => {
    const places = new Map([...fresh, ...(await lockRunning(transaction, touched))])
    const ends = ended.filter(({ id }) => places.has(id))
    const endsOfOlder = ends.filter(({ id }) => !fresh.has(id))

    await insertResponses(transaction, responseRows(work, now), options)
    await insertItems(transaction, writtenItems(opened, ends, places), now)
    await insertSegments(transaction, writtenSegments(logged, ends, places))
    await markEnded(transaction, endsOfOlder, options)
    await appendToConversations(transaction, conversing(ends, places), now)
  })
}

/**
 * Those of the responses that are still running: nobody else ends or deletes them until the
 * transaction is over. One order everywhere, so that two processes never wait for each other.
 */
async function lockRunning(handle: Handle, ids: readonly string[]): Promise<Places> {
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

function responseRows({ opened, ended }: JournalWork, now: Date): ResponseRow[] {
  const ends = new Map(ended.map((each) => [each.id, each.object]))
  return opened.map((head) => {
    const object = ends.get(head.id) ?? head.object
    const endedAt = isOver(object.status) ? now : null
    return { head, object, runnerId: head.runnerId, keyId: null, request: null, endedAt }
  })
}

function writtenItems(
  opened: JournalWork['opened'],
  ends: readonly EndedResponse[],
  places: Places,
): ItemRow[] {
  const inputs = opened.flatMap((head) => itemRows(head, 'input', head.input))
  const outputs = ends.flatMap(({ id, object }) => {
    const ownerId = places.get(id)?.ownerId
    return ownerId === undefined ? [] : itemRows({ id, ownerId }, 'output', object.output)
  })
  return [...inputs, ...outputs]
}

function writtenSegments(
  logged: JournalWork['logged'],
  ends: readonly EndedResponse[],
  places: Places,
) {
  const lastOnes = ends.flatMap(({ id, segment }) => (segment === null ? [] : [{ id, segment }]))
  return [...logged.filter(({ id }) => places.has(id)), ...lastOnes]
}

/** The responses whose items go to a conversation now. */
function conversing(ends: readonly EndedResponse[], places: Places) {
  return ends.flatMap(({ id, object: { status } }) => {
    const conversationId = places.get(id)?.conversationId ?? null
    const isAnswer = status === 'completed' || status === 'incomplete'
    return isAnswer && conversationId !== null ? [{ id, conversationId }] : []
  })
}

/** The row of a conversation is the lock of its items. What is in it already is not added again. */
async function appendToConversations(
  handle: Handle,
  answers: readonly { id: string; conversationId: string }[],
  now: Date,
): Promise<void> {
  if (answers.length === 0) return
  const conversationIds = [...new Set(answers.map(({ conversationId }) => conversationId))]
  // A statement of its own: the next one sees what others added while this one waited.
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
    where response.id in ${idRows(answers.map(({ id }) => id))}
    on conflict (conversation_id, item_id) do nothing`)
}
