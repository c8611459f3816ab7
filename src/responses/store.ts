import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { response, responseItem, responseLog } from '#db/schema/responses.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { chainTables } from './chain-store.ts'
import { writeJournal } from './journal-store.ts'
import { type EnqueueOptions, queueTables } from './queue-store.ts'
import type { Page, PageRequest, ResponseStatus, StoredItem } from './response.ts'
import { createSweep } from './retention-store.ts'
import {
  type Handle,
  idRows,
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
 * The tables of stored responses. Methods of clients take the owner: a response of another owner
 * does not exist for them, and an unavailable database fails fast with `service_unavailable`.
 * Methods of background work wait for the database.
 */
export type ResponseStore = {
  /** In one transaction. Skips responses that were deleted or ended in the meantime. */
  write(work: JournalWork): Promise<void>
  find(ownerId: string, id: string): Promise<FoundResponse | undefined>
  /**
   * Input and output of the response and of all previous ones, oldest first. Undefined if one of
   * them does not exist. Extends the retention of the whole chain. Throws `invalid_request` if the
   * chain has the maximum length, `request_too_large` if it holds more than one response may.
   */
  chain(ownerId: string, id: string): Promise<Chain | undefined>
  /**
   * Items of responses and conversations by id, the newest of those with the same id. Unknown ids
   * are left out. Throws `request_too_large` for more than one response may hold.
   */
  findItems(ownerId: string, itemIds: readonly string[]): Promise<ReadonlyMap<string, StoredItem>>
  /**
   * The input of a response including all previous ones; undefined: no such response. Throws
   * `invalid_request` if `after` is none of these items.
   */
  listInputItems(
    ownerId: string,
    id: string,
    page: PageRequest,
  ): Promise<Page<StoredItem> | undefined>
  /** False: no such response. */
  remove(ownerId: string, id: string): Promise<boolean>

  /** Segments of a log after this sequence number, in order; the first may start before it. */
  readLog(id: string, after: number, charsMax: number): Promise<readonly LogSegment[]>
  /** Background. Leaves out responses that do not exist. */
  progress(ids: readonly string[]): Promise<readonly LogProgress[]>

  /** Stores a queued response with its job; false: the key has `unfinishedMax` unfinished ones. */
  enqueue(response: QueuedResponse, options: EnqueueOptions): Promise<boolean>
  /** Ends a response that is still queued; false: it is not. */
  endQueued(ownerId: string, id: string, ending: Ending): Promise<boolean>
  /** Background. Undefined: it is not queued. */
  findQueued(id: string): Promise<QueuedResponse | undefined>
  /** Background. Marks a queued response as run by this runner; false: it is not queued. */
  claimQueued(id: string, runnerId: string): Promise<boolean>
  /** Background. Adds jobs for queued responses that have none, as earlier versions left them. */
  addMissingJobs(
    queue: string,
    addJob: (transaction: Transaction, id: string) => Promise<void>,
  ): Promise<void>

  /** Background. */
  heartbeat(runnerId: string): Promise<void>
  /** Background. Responses in progress whose runner has sent no heartbeat since, or never. */
  findOrphans(before: Date, countMax: number): Promise<readonly OrphanedResponse[]>
  /** Background. Responses in progress of this runner that it does not know. */
  findUntracked(
    runner: { id: string; known: readonly string[] },
    countMax: number,
  ): Promise<readonly OrphanedResponse[]>
  /** Ends a response in progress; false: it is not, or its log is past the start of the segment. */
  endInProgress(id: string, ending: Ending): Promise<boolean>
  /** Background. Deletes expired responses and the oldest ones of owners over their limit. */
  sweep(now: Date): Promise<void>
}

export function createResponseStore(
  database: Pick<Database, 'drizzle' | 'kind'>,
  options: StoreOptions,
): ResponseStore {
  const { drizzle } = database
  const { now } = options
  const runQuery = createQueryRunner()
  const requestOptions = { ...options, runQuery }
  return {
    find: (ownerId, id) => runQuery(() => findResponse(drizzle, { ownerId, id }, now())),

    remove: (ownerId, id) =>
      runQuery(async () => {
        const removed = await drizzle.execute<{ is_kept: boolean }>(sql`
          delete from ${response} where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid
          returning ${isKept(now())} as is_kept`)
        return removed[0]?.is_kept ?? false
      }),

    readLog: (id, after, charsMax) => runQuery(() => readLog(drizzle, { id, after, charsMax })),

    async progress(ids) {
      if (ids.length === 0) return []
      const rows = await drizzle.execute<LogProgress>(sql`
        select response.id, response.status, ${lastInLog} as last
        from ${response} where response.id in ${idRows(ids.map(keyOf))}`)
      return [...rows]
    },

    ...chainTables(drizzle, requestOptions),
    ...queueTables(drizzle, requestOptions),
    ...runnerTables(drizzle, options),
    write: (work) => writeJournal(drizzle, work, options),
    sweep: createSweep(database, options),
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

const segmentsPerReadMax = 1_000

/** The limit counts bytes, which the database knows without reading the frames. */
async function readLog(
  drizzle: Handle,
  { id, after, charsMax }: { id: string; after: number; charsMax: number },
): Promise<readonly LogSegment[]> {
  const key = keyOf(id)
  const rows = await drizzle.execute<LogSegment>(sql`
    select first, last, frames from (
      select first, last, frames,
        sum(octet_length(frames)) over (order by first) - octet_length(frames) as before
      from (
        select first, last, frames from ${responseLog}
        where response_id = ${key} and last > ${after}::integer and first >= coalesce((
          select max(first) from ${responseLog}
          where response_id = ${key} and first <= ${after}::bigint + 1), 0)
        order by first limit ${segmentsPerReadMax}::integer) as segment) as measured
    where before < ${charsMax}::bigint order by first`)
  return [...rows]
}
