import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { Attributes, FileRetrieval, NodeView, RetrievalStatus } from '#files/files.ts'
import { roleOfRank } from '#files/roles.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'

/** What can run a statement: the database, or a transaction. */
export type Handle = Pick<Database['drizzle'], 'execute'>

/** As the functions of the database take who asks: two arguments. */
export function principalArguments({ userId, groups }: RequestPrincipal): SQL {
  return sql`${userId}::uuid, ${arrayText(groups)}::text[]`
}

/** A list as one text in the form of PostgreSQL's arrays. */
export function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`
}

/** The caller's rank on a node; null where they may not read it. */
export function rankOn(node: SQL, caller: RequestPrincipal): SQL {
  return sql`node_role(${node}, ${principalArguments(caller)})`
}

/** The worse, the higher. */
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

/** The states of a file in the collections that the caller sees, as rows of a subquery. */
function statesOf(fileId: SQL, caller: RequestPrincipal): SQL {
  return sql`(
    select collection.name, state.state, state.stage, state.error_code, state.error_message,
      state.chunks, case state.state
        when 'failed' then 4 when 'skipped' then 3 when 'done' then 0
        else case coalesce(state.stage, 'waiting') when 'waiting' then 2 else 1 end
      end as rank
    from collection_file_state state
    join collection on collection.id = state.collection_id
    where state.file_id = ${fileId} and (collection.owner_id = ${caller.userId}::uuid or exists (
      select 1 from share
      where share.resource_type = 'collection' and share.resource_id = collection.id
        and is_granted_to(share.principal_type, share.principal_id, ${principalArguments(caller)}))))`
}

/** The rank of a file's status; null where it has none. */
export function statusRankOf(fileId: SQL, caller: RequestPrincipal): SQL {
  return sql`(select max(standing.rank) from ${statesOf(fileId, caller)} standing)`
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
 * The nodes of a page as the caller sees them, in its order; what the caller may not read is left
 * out. `page` has the columns of `node`, a `sort_key`, and a `position` to sort by.
 */
export async function readViews(
  handle: Handle,
  caller: RequestPrincipal,
  page: SQL,
): Promise<readonly SortedView[]> {
  const rows = await handle.execute<ViewRow>(sql`
    with page as materialized (${page}),
    ranked as materialized (
      select page.*, ${rankOn(sql`page.id`, caller)} as rank from page),
    seen as materialized (
      select parent.id from (select distinct parent_id as id from page offset 0) parent
      where ${rankOn(sql`parent.id`, caller)} is not null)
    select ranked.id, ranked.kind, ranked.name, ranked.owner_id, ranked.created_by, ranked.version,
      ranked.rank, ranked.sort_key, app_user.subject as owner_name,
      (select seen.id from seen where seen.id = ranked.parent_id) as folder_id,
      ${millis(sql`ranked.created_at`)} as created_ms,
      ${millis(sql`ranked.updated_at`)} as updated_ms,
      ${millis(sql`file.expires_at`)} as expires_ms,
      file.bytes::text as bytes, file.mime_type, file.sha256, file.attributes, file.purpose,
      is_node_shared(ranked.id) as is_shared,
      case ranked.kind when 'file' then (select json_agg(standing order by standing.name)
        from ${statesOf(sql`ranked.id`, caller)} standing) end as states,
      case ranked.kind when 'folder' then json_build_object(
        'files', ${countOf('file')}, 'folders', ${countOf('folder')}) end as counts
    from ranked
    left join file on file.node_id = ranked.id
    left join app_user on app_user.id = ranked.owner_id
    where ranked.rank is not null
    order by ranked.position`)
  return rows.map((row) => ({ view: viewOf(row), sortKey: row.sort_key }))
}

/** One node as the caller sees it. */
export async function readView(
  handle: Handle,
  caller: RequestPrincipal,
  id: string,
): Promise<NodeView | undefined> {
  const page = sql`select node.*, '' as sort_key, 1 as position from node where id = ${id}::uuid`
  const [found] = await readViews(handle, caller, page)
  return found?.view
}

/** How many children are counted; in order and with an end, so that the index is used for it. */
const countMax = 1_000

/** The live children of a kind that `ranked` has. */
function countOf(kind: 'file' | 'folder'): SQL {
  return sql`(select count(*) from (
    select 1 from node child
    where child.parent_id = ranked.id and child.kind = ${kind} and child.trashed_at is null
    order by child.name_key limit ${countMax}::integer) counted)`
}

/** Times come out of a plain statement as texts of several forms, numbers do not. */
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
    (known, state) => (known === undefined || state.rank > known.rank ? state : known),
    undefined,
  )
  const status = statuses[worst?.rank ?? -1]
  if (worst === undefined || status === undefined) return null
  const { error_code: code, error_message: message } = worst
  const words: Record<string, string> = { done: 'completed', skipped: 'skipped', failed: 'error' }
  return {
    status,
    state: words[worst.state] ?? worst.stage ?? 'waiting',
    error: worst.rank < 3 || code === null ? null : { code, message: message ?? '' },
    // A file that several collections have is split once for all that share an index.
    chunks: Math.max(...states.map(({ chunks }) => chunks)),
    collections: states.map(({ name }) => name),
  }
}
