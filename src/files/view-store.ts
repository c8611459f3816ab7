import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import {
  type FileRetrieval,
  type FileView,
  type FolderView,
  type NodeView,
  type RetrievalStatus,
  roleOfRank,
} from '#files/files.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'

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

/** From best to worst. */
const statuses: readonly RetrievalStatus[] = [
  'RAG Available',
  'Processing',
  'Pending',
  'Not Supported',
  'Failed',
]

export function rankOfStatus(status: RetrievalStatus): number {
  return statuses.indexOf(status)
}

/** A subquery: the states of a file in the collections that the principal can see. */
function statesOf(fileId: SQL, principal: RequestPrincipal): SQL {
  return sql`(
    select collection.name, state.state, state.stage, state.error_code, state.error_message,
      state.chunks, case state.state
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
  readonly name: string
  readonly state: string
  readonly stage: string | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly chunks: number
  readonly rank: number
}

/** Columns of files are null in a folder, and `childCounts` in a file. */
type ViewRow = Omit<
  FileView,
  'kind' | 'role' | 'createdAt' | 'updatedAt' | 'expiresAt' | 'retrieval'
> &
  Pick<FolderView, 'childCounts'> & {
    readonly kind: 'file' | 'folder'
    readonly rank: number
    readonly createdMs: number
    readonly updatedMs: number
    readonly expiresMs: number | null
    readonly states: readonly StateRow[] | null
    readonly sortKey: string
  }

export type SortedView = { readonly view: NodeView; readonly sortKey: string }

/**
 * The readable nodes of a page in its order. `page` selects the columns of `node`, a `sort_key`, and a
 * `position` to sort by.
 */
export async function readViews(
  handle: Handle,
  principal: RequestPrincipal,
  page: SQL,
): Promise<readonly SortedView[]> {
  const rows = await handle.execute<ViewRow>(sql`
    with page as materialized (${page}),
    ranked as materialized (
      select page.*, ${rankOn(sql`page.id`, principal)} as rank from page),
    readable as materialized (
      select parent.id from (select distinct parent_id as id from page offset 0) parent
      where ${rankOn(sql`parent.id`, principal)} is not null)
    select ranked.id, ranked.kind, ranked.name, ranked.version, ranked.rank,
      ranked.owner_id as "ownerId", app_user.subject as "ownerName",
      ranked.created_by as "createdBy", ranked.sort_key as "sortKey",
      (select readable.id from readable where readable.id = ranked.parent_id) as "folderId",
      ${millis(sql`ranked.created_at`)} as "createdMs",
      ${millis(sql`ranked.updated_at`)} as "updatedMs",
      ${millis(sql`file.expires_at`)} as "expiresMs",
      file.bytes::float8 as bytes, file.mime_type as "mimeType", file.sha256, file.attributes,
      file.purpose, is_node_shared(ranked.id) as "isShared",
      case ranked.kind when 'file' then (select json_agg(state_row order by state_row.name)
        from ${statesOf(sql`ranked.id`, principal)} state_row) end as states,
      case ranked.kind when 'folder' then json_build_object(
        'files', ${countOf('file')}, 'folders', ${countOf('folder')}) end as "childCounts"
    from ranked
    left join file on file.node_id = ranked.id
    left join app_user on app_user.id = ranked.owner_id
    where ranked.rank is not null
    order by ranked.position`)
  return rows.map((row) => ({ view: viewOf(row), sortKey: row.sortKey }))
}

export async function readView(
  handle: Handle,
  principal: RequestPrincipal,
  id: string,
): Promise<NodeView | undefined> {
  const page = sql`select node.*, '' as sort_key, 1 as position from node where id = ${id}::uuid`
  const [found] = await readViews(handle, principal, page)
  return found?.view
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

function viewOf(row: ViewRow): NodeView {
  const { kind, rank, createdMs, updatedMs, expiresMs, states, sortKey: _, ...columns } = row
  const { bytes, mimeType, sha256, attributes, purpose, childCounts, ...fields } = columns
  const node = {
    ...fields,
    createdAt: new Date(createdMs),
    updatedAt: new Date(updatedMs),
    role: roleOfRank(rank),
  }
  if (kind === 'folder') return { ...node, kind, childCounts }
  const content = { bytes, mimeType, sha256, attributes, purpose }
  const expiresAt = expiresMs === null ? null : new Date(expiresMs)
  return { ...node, kind, ...content, expiresAt, retrieval: retrievalOf(states ?? []) }
}

function retrievalOf(states: readonly StateRow[]): FileRetrieval | null {
  const worst = states.reduce<StateRow | undefined>(
    (worst, state) => (worst === undefined || state.rank > worst.rank ? state : worst),
    undefined,
  )
  const status = statuses[worst?.rank ?? -1]
  if (worst === undefined || status === undefined) return null
  const { error_code: code, error_message: message } = worst
  const finalStates: Record<string, string> = {
    done: 'completed',
    skipped: 'skipped',
    failed: 'error',
  }
  return {
    status,
    state: finalStates[worst.state] ?? worst.stage ?? 'waiting',
    error: worst.rank < 3 || code === null ? null : { code, message: message ?? '' },
    // Collections that share an index share the passages of a file.
    chunks: Math.max(...states.map(({ chunks }) => chunks)),
    collections: states.map(({ name }) => name),
  }
}
