import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { rowsOf } from '#db/json-rows.ts'
import {
  conversation,
  conversationItem,
  response,
  responseItem,
  responseLog,
} from '#db/schema/responses.ts'
import type { EndedResponse, JournalWork } from '#responses/stored.ts'
import type { ResponseStatus } from './response.ts'
import {
  charsPerStatement,
  chunksOf,
  endRow,
  type Handle,
  idRows,
  itemRows,
  itemsOf,
  responseRow,
  rowTimes,
  type StoreOptions,
  segmentRow,
} from './row-store.ts'

type LockedRow = { readonly id: string; readonly status: ResponseStatus }

/**
 * Writes a batch: one statement, and so one round trip, unless it is large or extends a conversation.
 * A response that opens and ends in the same batch is written once, in its final state. Returns the
 * ids of ended responses that another worker has ended in another way: they stay unchanged.
 */
export async function writeJournal(
  { drizzle, executePrepared }: Pick<Database, 'drizzle' | 'executePrepared'>,
  work: JournalWork,
  options: StoreOptions,
): Promise<ReadonlySet<string>> {
  const { opened, logged, ended } = work
  if (opened.length + logged.length + ended.length === 0) return new Set()
  const added = new Set(opened.map(({ id }) => id))
  const others = [...logged, ...ended].map(({ id }) => id).filter((id) => !added.has(id))
  const ids = {
    added: [...added],
    existing: [...new Set(others)],
    ended: ended.map(({ id }) => id),
  }
  const [first, ...more] = split(rowsOfWork(work, added, options)).map((rows) =>
    writeStatement(ids, rows),
  )
  const appended = ended.filter(isAppended)
  if (first !== undefined && more.length + appended.length === 0) {
    return endedOtherwise(ended, await executePrepared<LockedRow>(first))
  }
  return drizzle.transaction(async (transaction) => {
    const locked = first === undefined ? [] : await transaction.execute<LockedRow>(first)
    for (const statement of more) await transaction.execute(statement)
    const finished = new Set(locked.flatMap(({ id, status }) => (isRunning(status) ? [] : [id])))
    const stored = appended.filter(({ id }) => !finished.has(id))
    await appendToConversations(transaction, stored, options.now())
    return endedOtherwise(ended, locked)
  })
}

/** By table, in the order of writing; `ended`: the ends of responses that have a row. */
type Rows<Json> = { responses: Json; items: Json; segments: Json; ended: Json }

function rowsOfWork(
  { opened, logged, ended }: JournalWork,
  added: ReadonlySet<string>,
  options: StoreOptions,
): Rows<readonly string[]> {
  const times = rowTimes(options)
  const finals = new Map(ended.map(({ id, object }) => [id, object]))
  return {
    responses: opened.map((head) =>
      responseRow(head, finals.get(head.id) ?? head.object, { runnerId: head.runnerId }, times),
    ),
    items: [
      ...opened.flatMap((head) => itemRows(head, 'input', head.input, times)),
      ...ended.flatMap((end) => itemRows(end, 'output', end.object.output, times)),
    ],
    segments: [...logged, ...ended].flatMap(({ id, segment }) =>
      segment === null ? [] : [segmentRow(id, segment)],
    ),
    ended: ended.flatMap(({ id, object }) => (added.has(id) ? [] : [endRow(id, object, times)])),
  }
}

/** The rows of one statement, or of several where they are too large for one. */
function split(rows: Rows<readonly string[]>): Rows<string>[] {
  const order = ['responses', 'items', 'segments', 'ended'] as const
  const chunks = order.flatMap((table) => chunksOf(rows[table]).map((json) => ({ [table]: json })))
  const one: Rows<string> = Object.assign({}, noRows, ...chunks)
  const isWhole = chunks.length <= order.filter((table) => rows[table].length > 0).length
  const chars = order.reduce((sum, table) => sum + one[table].length, 0)
  if (isWhole && chars <= charsPerStatement) return [one]
  return chunks.map((chunk) => ({ ...noRows, ...chunk }))
}

const noRows: Rows<string> = { responses: '[]', items: '[]', segments: '[]', ended: '[]' }

const tables = {
  response: rowsOf(response),
  item: rowsOf(responseItem),
  segment: rowsOf(responseLog),
}

/**
 * Locks the existing responses, so that no other worker ends or deletes them meanwhile, and adds the
 * rows of those that are in progress. Returns the locked rows of ended ones as they were. The fixed order of locks
 * prevents deadlocks. The server keeps the plan of the statement: each row is found by an index,
 * also by a plan from the time of small tables. Therefore ends are an upsert, and not an update.
 */
function writeStatement(
  ids: Readonly<Record<'added' | 'existing' | 'ended', readonly string[]>>,
  rows: Rows<string>,
): SQL {
  const isOpen = sql`given."responseId" in (select id from open)`
  return sql`
    with locked as (
      select found.* from (select id from ${idRows(ids.existing)} as unsorted order by id) as wanted
      cross join lateral (
        select id, status, owner_id, background, created_at from ${response}
        where response.id = wanted.id for no key update) as found
    ),
    open as (
      select id from locked where status = 'in_progress'
      union all select id from ${idRows(ids.added)} as added
    ),
    opened as (
      insert into ${response} (${tables.response.columns})
      select * from ${tables.response.given(rows.responses)} on conflict do nothing
    ),
    item as (
      insert into ${responseItem} (${tables.item.columns})
      select * from ${tables.item.given(rows.items)} where ${isOpen} on conflict do nothing
    ),
    segment as (
      insert into ${responseLog} (${tables.segment.columns})
      select * from ${tables.segment.given(rows.segments)} where ${isOpen} on conflict do nothing
    ),
    ended as (
      insert into ${response} (id, owner_id, background, created_at, status, object, ended_at,
        expires_at, log_expires_at)
      select locked.id, owner_id, background, created_at, given.status, given.object,
        given."endedAt", given."expiresAt", given."logExpiresAt"
      from json_to_recordset(${rows.ended}::json) as given(id text, status text, object text,
        "endedAt" timestamptz, "expiresAt" timestamptz, "logExpiresAt" timestamptz)
      join locked on locked.id = given.id and locked.status = 'in_progress'
      on conflict (id) do update set status = excluded.status, object = excluded.object,
        request = null, ended_at = excluded.ended_at, expires_at = excluded.expires_at,
        log_expires_at = excluded.log_expires_at
    )
    select id, status from locked where id in ${idRows(ids.ended)}`
}

function isRunning(status: ResponseStatus): boolean {
  return status === 'in_progress'
}

/** The same status is the outcome of an earlier attempt of this write. */
function endedOtherwise(
  ended: readonly EndedResponse[],
  locked: readonly LockedRow[],
): ReadonlySet<string> {
  const statuses = new Map(locked.map(({ id, status }) => [id, status]))
  const others = ended.filter(({ id, object }) => {
    const status = statuses.get(id)
    return status !== undefined && !isRunning(status) && status !== object.status
  })
  return new Set(others.map(({ id }) => id))
}

/** Whether its items are appended to a conversation. */
function isAppended(
  end: EndedResponse,
): end is EndedResponse & { readonly conversationId: string } {
  const { status } = end.object
  return end.conversationId !== null && (status === 'completed' || status === 'incomplete')
}

/** The row of a conversation locks its items. Items that it already holds are skipped. */
async function appendToConversations(
  handle: Handle,
  responses: readonly { readonly id: string; readonly conversationId: string }[],
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
