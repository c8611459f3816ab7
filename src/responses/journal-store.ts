import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { conversation, conversationItem, response } from '#db/schema/responses.ts'
import type { EndedResponse, JournalWork } from '#responses/stored.ts'
import type { ResponseStatus } from './response.ts'
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
type LockedRow = ResponseOwner & { readonly status: ResponseStatus }
type LockedRows = ReadonlyMap<string, LockedRow>

/**
 * Writes a batch with a constant number of statements. A response that opens and ends in the same
 * batch is written once, in its final state. Returns the ids of ended responses that another worker
 * has ended in another way: they stay unchanged.
 */
export async function writeJournal(
  drizzle: Database['drizzle'],
  work: JournalWork,
  options: StoreOptions,
): Promise<ReadonlySet<string>> {
  const { opened, logged, ended } = work
  if (opened.length + logged.length + ended.length === 0) return new Set()
  const now = options.now()
  const added = new Map(opened.map((each): [string, ResponseOwner] => [each.id, each]))
  const existing = [...logged, ...ended].map(({ id }) => id).filter((id) => !added.has(id))
  return drizzle.transaction(async (transaction) => {
    const locked = await lockRows(transaction, existing)
    const running = [...locked].filter(([, { status }]) => status === 'in_progress')
    const owners: Owners = new Map([...added, ...running])
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
    return new Set(ended.flatMap((end) => (isEndedOtherwise(end, locked) ? [end.id] : [])))
  })
}

/** The same status is the outcome of an earlier attempt of this write. */
function isEndedOtherwise({ id, object }: EndedResponse, locked: LockedRows): boolean {
  const status = locked.get(id)?.status
  return status !== undefined && status !== 'in_progress' && status !== object.status
}

/**
 * Locks the responses, so that no other worker ends or deletes them during the transaction. The fixed
 * order prevents deadlocks.
 */
async function lockRows(handle: Handle, ids: readonly string[]): Promise<LockedRows> {
  if (ids.length === 0) return new Map()
  const rows = await handle.execute<LockedRow & { id: string }>(sql`
    select response.id, response.owner_id as "ownerId",
      response.conversation_id as "conversationId", response.status
    from ${response} where response.id in ${idRows([...new Set(ids)])}
    order by response.id for no key update of response`)
  return new Map(rows.map((row) => [row.id, row]))
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
