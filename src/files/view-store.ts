import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { Attributes, FileRetrieval, NodeView, RetrievalStatus } from '#files/files.ts'
import { roleOfRank } from '#files/files.ts'
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

type ViewRow = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly name: string
  readonly folder_id: string | null
  readonly owner_id: string
  readonly owner_name: string | null
  readonly created_by: string
  readonly version: number
  readonly created_ms: number
  readonly updated_ms: number
  readonly rank: number
  readonly is_shared: boolean
  readonly bytes: string | null
  readonly mime_type: string | null
  readonly sha256: string | null
  readonly attributes: Attributes | null
  readonly purpose: string | null
  readonly expires_ms: number | null
  readonly states: readonly StateRow[] | null
  readonly counts: { readonly files: number; readonly folders: number } | null
  readonly sort_key: string
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
    select ranked.id, ranked.kind, ranked.name, ranked.owner_id, ranked.created_by, ranked.version,
      ranked.rank, ranked.sort_key, app_user.subject as owner_name,
      (select readable.id from readable where readable.id = ranked.parent_id) as folder_id,
      ${millis(sql`ranked.created_at`)} as created_ms,
      ${millis(sql`ranked.updated_at`)} as updated_ms,
      ${millis(sql`file.expires_at`)} as expires_ms,
      file.bytes::text as bytes, file.mime_type, file.sha256, file.attributes, file.purpose,
      is_node_shared(ranked.id) as is_shared,
      case ranked.kind when 'file' then (select json_agg(state_row order by state_row.name)
        from ${statesOf(sql`ranked.id`, principal)} state_row) end as states,
      case ranked.kind when 'folder' then json_build_object(
        'files', ${countOf('file')}, 'folders', ${countOf('folder')}) end as counts
    from ranked
    left join file on file.node_id = ranked.id
    left join app_user on app_user.id = ranked.owner_id
    where ranked.rank is not null
    order by ranked.position`)
  return rows.map((row) => ({ view: viewOf(row), sortKey: row.sort_key }))
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
  const common = {
    id: row.id,
    name: row.name,
    folderId: row.folder_id,
    ownerId: row.owner_id,
    ownerName: row.owner_name,
    createdBy: row.created_by,
    version: row.version,
    createdAt: new Date(row.created_ms),
    updatedAt: new Date(row.updated_ms),
    role: roleOfRank(row.rank),
    isShared: row.is_shared,
  }
  if (row.kind === 'folder') {
    return { ...common, kind: 'folder', childCounts: row.counts ?? { files: 0, folders: 0 } }
  }
  return {
    ...common,
    kind: 'file',
    bytes: Number(row.bytes),
    mimeType: row.mime_type ?? '',
    sha256: row.sha256 ?? '',
    attributes: row.attributes ?? {},
    purpose: row.purpose ?? '',
    expiresAt: row.expires_ms === null ? null : new Date(row.expires_ms),
    retrieval: retrievalOf(row.states ?? []),
  }
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
