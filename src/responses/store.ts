import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner, type QueryRunner } from '#db/query-runner.ts'
import { response, responseItem } from '#db/schema/responses.ts'
import { chainTables } from './chain-store.ts'
import { writeJournal } from './journal-store.ts'
import { logTables } from './log-store.ts'
import { findStrays } from './orphan-store.ts'
import { queueTables } from './queue-store.ts'
import type { Page, PageRequest, ResponseStatus, StoredItem } from './response.ts'
import { createSweep } from './retention-store.ts'
import {
  type Handle,
  isKept,
  keyOf,
  lastInLog,
  readObject,
  type StoreOptions,
} from './row-store.ts'
import { runnerTables } from './runner-store.ts'
import type {
  Chain,
  Ending,
  FoundResponse,
  JournalWork,
  LogProgress,
  LogSegment,
  OrphanedResponse,
  QueuedResponse,
} from './stored.ts'

/**
 * The tables of stored responses. Every question names the owner; what belongs to somebody else is
 * answered as if it did not exist.
 */
export type ResponseStore = {
  /** In one transaction. What was deleted in the meantime stays deleted; nothing of it is written. */
  write(work: JournalWork): Promise<void>
  find(ownerId: string, id: string): Promise<FoundResponse | undefined>
  /**
   * Everything that a response that follows `id` has before its own input: input and output of the
   * whole chain, oldest first. Undefined where `id`, or anything before it, is gone. Puts off the
   * end of the whole chain. Throws `invalid_request` where the chain is as long as one may be, and
   * `request_too_large` where it holds more than one response may.
   */
  chain(ownerId: string, id: string): Promise<Chain | undefined>
  /**
   * Items of responses and of conversations by their ids, the newest of those with the same id; what
   * is not there is left out. Throws `request_too_large` for more than one response may hold.
   */
  findItems(ownerId: string, itemIds: readonly string[]): Promise<ReadonlyMap<string, StoredItem>>
  /**
   * The input of a response with all that it followed; undefined where there is no such response.
   * Throws `invalid_request` where `after` is none of these items.
   */
  listInputItems(
    ownerId: string,
    id: string,
    page: PageRequest,
  ): Promise<Page<StoredItem> | undefined>
  /** Says whether there was such a response. */
  remove(ownerId: string, id: string): Promise<boolean>

  /** Segments of a log that begin behind this sequence number or span it, in order. */
  readLog(id: string, after: number, charsMax: number): Promise<readonly LogSegment[]>
  /** How far these logs have come; what is gone is left out. */
  progress(ids: readonly string[]): Promise<readonly LogProgress[]>

  /** Says no when the key has `unfinishedMax` background responses that are not over. */
  enqueue(response: QueuedResponse, unfinishedMax: number): Promise<boolean>
  /**
   * Takes the oldest queued responses for this runner; each is taken once, whoever asks. They are as
   * they were accepted; their sealed requests are kept no longer.
   */
  claim(runnerId: string, countMax: number): Promise<readonly QueuedResponse[]>
  /** Ends a response that is still queued; says whether it was. The segments go to its log. */
  endQueued(ownerId: string, id: string, ending: Ending): Promise<boolean>

  /** Says that this runner lives. */
  beat(runnerId: string): Promise<void>
  /** Responses in progress whose runner gave no sign of life since then, or never did. */
  findLost(before: Date, countMax: number): Promise<readonly OrphanedResponse[]>
  /** What this runner has in progress here, and does not know of. */
  findStrays(
    runner: { id: string; known: readonly string[] },
    countMax: number,
  ): Promise<readonly OrphanedResponse[]>
  /** Ends one in progress, unless its log went on to where `segment` begins; says whether it did. */
  endLost(id: string, ending: Ending): Promise<boolean>
  /** Deletes what is past its time, and the oldest responses of those who have too many. */
  sweep(now: Date): Promise<void>
}

/**
 * What a request waits for fails with `service_unavailable`, soon, while the database is away; the
 * rest, `write` among it, waits as long as it takes.
 */
export function createResponseStore(
  database: Pick<Database, 'drizzle' | 'kind'>,
  options: StoreOptions,
): ResponseStore {
  const { drizzle } = database
  const ask = createQueryRunner()
  const asking = { ...options, ask }
  return {
    ...foundResponses(drizzle, asking),
    ...chainTables(drizzle, asking),
    ...logTables(drizzle, ask),
    ...queueTables(drizzle, asking),
    ...runnerTables(drizzle, options),
    findStrays: (runner, countMax) => findStrays(drizzle, runner, countMax),
    write: (work) => writeJournal(drizzle, work, options),
    sweep: createSweep(database, options),
  }
}

function foundResponses(drizzle: Handle, { ask, now }: StoreOptions & { ask: QueryRunner }) {
  return {
    find: (ownerId: string, id: string) => ask(() => findResponse(drizzle, { ownerId, id }, now())),

    remove: (ownerId: string, id: string) =>
      ask(async () => {
        const removed = await drizzle.execute<{ is_kept: boolean }>(sql`
          delete from ${response} where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid
          returning ${isKept(now())} as is_kept`)
        return removed[0]?.is_kept ?? false
      }),
  }
}

type FoundRow = {
  object: string
  status: ResponseStatus
  runner_id: string | null
  background: boolean
  last: number
  output: string
}

async function findResponse(
  drizzle: Handle,
  { ownerId, id }: { ownerId: string; id: string },
  now: Date,
): Promise<FoundResponse | undefined> {
  const [row] = await drizzle.execute<FoundRow>(sql`
    select response.object, response.status, response.runner_id, response.background,
      ${lastInLog} as last,
      (select '[' || coalesce(string_agg(item.json, ',' order by item.position), '') || ']'
        from ${responseItem} as item
        where item.response_id = response.id and item.direction = 'output') as output
    from ${response}
    where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid and ${isKept(now)}`)
  if (row === undefined) return undefined
  const { background, runner_id: runnerId, status, last } = row
  return { object: readObject(row), runnerId, background, log: { id, status, last } }
}
