import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import { roleOfRank } from './files.ts'
import type { FileRecord, FolderRecord, NodeRecord } from './record.ts'

/** The database or a transaction. */
export type Handle = Pick<Database['drizzle'], 'execute'>

/** The two arguments that stand for a principal in database functions. */
export function principalArguments({ userId, groups }: RequestPrincipal): SQL {
  return sql`${userId}::uuid, ${arrayText(groups)}::text[]`
}

/** A PostgreSQL array literal. */
export function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`
}

/** The rank of the principal's role on a node; null without read access. */
export function rankOn(node: SQL, principal: RequestPrincipal): SQL {
  return sql`node_role(${node}, ${principalArguments(principal)})`
}

/** From best to worst. OpenAI's clients poll until `status` is `processed` or `error`. */
const statuses = [
  { retrieval_status: 'RAG Available', status: 'processed' },
  { retrieval_status: 'Processing', status: 'processing' },
  { retrieval_status: 'Pending', status: 'processing' },
  { retrieval_status: 'Not Supported', status: 'processed' },
  { retrieval_status: 'Failed', status: 'error' },
] as const

export function rankOfStatus(
  retrievalStatus: (typeof statuses)[number]['retrieval_status'],
): number {
  return statuses.findIndex((status) => status.retrieval_status === retrievalStatus)
}

/** A subquery: the states of a file in the collections that the principal can see. */
function statesOf(fileId: SQL, principal: RequestPrincipal): SQL {
  return sql`(
    select collection.id, collection.name, state.state, state.stage, state.error_code, state.error_message,
      state.chunks, state.warnings, case state.state
        when 'failed' then 4 when 'skipped' then 3 when 'done' then 0
        else case coalesce(state.stage, 'waiting') when 'waiting' then 2 else 1 end
      end as rank
    from collection_file_state state
    join collection on collection.id = state.collection_id
    where state.file_id = ${fileId} and (collection.owner_id = ${principal.userId}::uuid or exists (
      select 1 from share
      where share.resource_type = 'collection' and share.resource_id = collection.id
        and is_granted_to(share.principal_type, share.principal_id, ${principalArguments(principal)}))))`
}

/** The rank of the retrieval status; null without collections. */
export function statusRankOf(fileId: SQL, principal: RequestPrincipal): SQL {
  return sql`(select max(state_row.rank) from ${statesOf(fileId, principal)} state_row)`
}

type StateRow = {
  readonly id: string
  readonly name: string
  readonly state: string
  readonly stage: string | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly chunks: number
  readonly warnings: string | null
  readonly rank: number
}

type TimeField = 'created_at' | 'created_at_iso' | 'updated_at' | 'expires_at' | 'expires_at_iso'

/** Columns of files are null in a folder, and `child_counts` in a file. */
type NodeRow = Omit<FileRecord, 'object' | 'filename' | 'my_role' | TimeField | RetrievalField> &
  Record<'created_at' | 'updated_at', number> &
  Pick<FolderRecord, 'child_counts'> & {
    readonly object: NodeRecord['object']
    readonly expires_at: number | null
    readonly rank: number
    readonly states: readonly StateRow[] | null
    readonly sort_key: string
  }

type RetrievalField = 'status' | 'retrieval_status' | 'retrieval'

export type SortedRecord = { readonly record: NodeRecord; readonly sortKey: string }

/**
 * The readable nodes of a page in its order. `page` selects the columns of `node`, a `sort_key`, and a
 * `position` to sort by.
 */
export async function readRecords(
  handle: Handle,
  principal: RequestPrincipal,
  page: SQL,
): Promise<readonly SortedRecord[]> {
  const rows = await handle.execute<NodeRow>(sql`
    with page as materialized (${page}),
    ranked as materialized (
      select page.*, ${rankOn(sql`page.id`, principal)} as rank from page),
    readable as materialized (
      select parent.id from (select distinct parent_id as id from page offset 0) parent
      where ${rankOn(sql`parent.id`, principal)} is not null)
    select ranked.id, ranked.kind as object, ranked.name, ranked.version, ranked.rank,
      json_build_object('id', ranked.owner_id, 'name', app_user.subject) as owner,
      ranked.created_by, ranked.sort_key,
      (select readable.id from readable where readable.id = ranked.parent_id) as folder_id,
      ${millis(sql`ranked.created_at`)} as created_at,
      ${millis(sql`ranked.updated_at`)} as updated_at,
      ${millis(sql`file.expires_at`)} as expires_at,
      file.bytes::float8 as bytes, file.mime_type, file.sha256, file.attributes, file.purpose,
      is_node_shared(ranked.id) as shared,
      case ranked.kind when 'file' then (select json_agg(state_row order by state_row.name)
        from ${statesOf(sql`ranked.id`, principal)} state_row) end as states,
      case ranked.kind when 'folder' then json_build_object(
        'files', ${countOf('file')}, 'folders', ${countOf('folder')}) end as child_counts
    from ranked
    left join file on file.node_id = ranked.id
    left join app_user on app_user.id = ranked.owner_id
    where ranked.rank is not null
    order by ranked.position`)
  return rows.map((row) => ({ record: renderRow(row), sortKey: row.sort_key }))
}

export async function readRecord(
  handle: Handle,
  principal: RequestPrincipal,
  id: string,
): Promise<NodeRecord | undefined> {
  const page = sql`select node.*, '' as sort_key, 1 as position from node where id = ${id}::uuid`
  const [found] = await readRecords(handle, principal, page)
  return found?.record
}

/** The limit and the order make the planner use the index. */
const childrenCountMax = 1_000

/** The number of children of a node of `ranked`, without the trash. */
function countOf(kind: 'file' | 'folder'): SQL {
  return sql`(select count(*) from (
    select 1 from node child
    where child.parent_id = ranked.id and child.kind = ${kind} and child.trashed_at is null
    order by child.name_key limit ${childrenCountMax}::integer) counted)`
}

/** Plain statements return times as text in a driver-dependent form, so times are selected as numbers. */
export function millis(column: SQL): SQL {
  return sql`(extract(epoch from ${column}) * 1000)::float8`
}

function renderRow(row: NodeRow): NodeRecord {
  const { object, rank, child_counts, states, sort_key: _, ...columns } = row
  const { bytes, mime_type, sha256, attributes, purpose, expires_at, ...fields } = columns
  const createdAt = new Date(fields.created_at)
  const node = {
    ...fields,
    created_at_iso: createdAt.toISOString(),
    updated_at: new Date(fields.updated_at).toISOString(),
    my_role: roleOfRank(rank),
  }
  if (object === 'folder') {
    return { ...node, object, created_at: node.created_at_iso, child_counts }
  }
  const expiresAt = expires_at === null ? null : new Date(expires_at)
  return {
    ...node,
    object,
    created_at: unixSeconds(createdAt),
    filename: node.name,
    bytes,
    mime_type,
    sha256,
    attributes,
    purpose,
    expires_at: expiresAt === null ? null : unixSeconds(expiresAt),
    expires_at_iso: expiresAt?.toISOString() ?? null,
    ...renderRetrieval(states ?? []),
  }
}

/** The worst state in any collection. */
function renderRetrieval(states: readonly StateRow[]): Pick<FileRecord, RetrievalField> {
  const worst = states.toSorted((one, other) => other.rank - one.rank)[0]
  const status = statuses[worst?.rank ?? -1]
  if (worst === undefined || status === undefined) {
    return { status: 'processed', retrieval_status: null, retrieval: null }
  }
  const { error_code: code, error_message: message } = worst
  const finalStates: Record<string, string> = {
    done: 'completed',
    skipped: 'skipped',
    failed: 'error',
  }
  const retrieval = {
    state: finalStates[worst.state] ?? worst.stage ?? 'waiting',
    error: worst.state === 'done' || code === null ? null : { code, message: message ?? '' },
    // Of the same content.
    warnings: readWarnings(states.find(({ warnings }) => warnings !== null)?.warnings ?? null),
    // Collections that share an index share the passages of a file.
    chunks: Math.max(...states.map(({ chunks }) => chunks)),
    collections: states.map(({ name }) => name),
    collection_ids: states.map(({ id }) => id),
  }
  return { ...status, retrieval }
}

function readWarnings(json: string | null): NonNullable<FileRecord['retrieval']>['warnings'] {
  return json === null ? [] : JSON.parse(json)
}
