import { type SQL, sql } from 'drizzle-orm'
import { createQueryRunner } from '#db/query-runner.ts'
import type { NodeRecord } from '#files/record.ts'
import {
  arrayText,
  millis,
  principalArguments,
  rankOfStatus,
  rankOn,
  readRecord,
  readRecords,
  type SortedRecord,
  statusRankOf,
} from '#files/record-store.ts'
import type { FilesDatabase } from '#files/tree/store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { PagePosition, Sort } from './listing.ts'
import type { ChildrenParams, FileListParams, SearchParams } from './schema.ts'

/** The principal's own files, files shared with them, or both. */
type Scope = FileListParams['scope']
type Rows = Promise<readonly SortedRecord[]>

export function createListingStore({ drizzle }: FilesDatabase) {
  const query = createQueryRunner()
  const read = (principal: RequestPrincipal, page: SQL): Rows =>
    query(() => readRecords(drizzle, principal, page))
  return {
    find: (principal: RequestPrincipal, id: string): Promise<NodeRecord | undefined> =>
      query(() => readRecord(drizzle, principal, id)),

    readable: (principal: RequestPrincipal, ids: readonly string[]): Promise<ReadonlySet<string>> =>
      query(async () => {
        const rows = await drizzle.execute<{ id: string }>(sql`
          select id from node
          where id = any(${arrayText(ids)}::uuid[]) and kind = 'file' and trashed_at is null
            and ${rankOn(sql`id`, principal)} is not null`)
        return new Set(rows.map(({ id }) => id))
      }),

    /** The readable folders above one, from the top level. */
    path: (principal: RequestPrincipal, id: string) =>
      query(async () =>
        drizzle.execute<{ id: string; name: string }>(sql`
          with recursive ancestor (id, name, parent_id, height) as (
            select id, name, parent_id, 0 from node where id = ${id}::uuid
            union all
            select parent.id, parent.name, parent.parent_id, ancestor.height + 1
            from ancestor join node parent on parent.id = ancestor.parent_id)
          select id, name from ancestor
          where height > 0 and ${rankOn(sql`ancestor.id`, principal)} is not null
          order by height desc`),
      ),

    list: (principal: RequestPrincipal, params: FileListParams): Rows =>
      read(principal, listPage(principal, params)),

    children: (
      principal: RequestPrincipal,
      params: ChildrenParams,
      after: PagePosition | null,
    ): Rows => {
      const branches =
        params.folder_id === null
          ? topBranches(principal, params.scope)
          : insideBranches(principal, params.folder_id, params.scope)
      return read(principal, page(branches, params, after))
    },

    search: (
      principal: RequestPrincipal,
      params: SearchParams & { terms: readonly string[] },
      after: PagePosition | null,
    ): Rows => {
      const conditions = [...params.terms.map(hasTerm), ...filters(principal, params)]
      const matches = sql.join(conditions, sql` and `)
      const { folder_id: folderId, scope } = params
      const isNarrowed = params.mime_type !== null || params.retrieval_status !== null
      const type = isNarrowed ? 'file' : 'all'
      const order = { sort: 'name', order: 'asc', type, limit: params.limit } as const
      const within =
        folderId === null ? readableBranches(principal, scope) : [isBelow(principal, scope)]
      const branches = within.map((branch) => sql`${branch} and ${matches}`)
      const found = page(branches, order, after)
      return read(principal, folderId === null ? found : sql`${foldersBelow(folderId)} ${found}`)
    },

    trash: (principal: RequestPrincipal, { limit, since }: { limit: number; since: Date }) =>
      query(async () => {
        const rows = await drizzle.execute<
          Pick<NodeRecord, 'id' | 'object' | 'name'> & { trashed_at: number }
        >(sql`
          select id, kind as object, name, ${millis(sql`trashed_at`)} as trashed_at from node
          where owner_id = ${principal.userId}::uuid and trash_id = id
            and trashed_at > ${since.toISOString()}::timestamptz
          order by node.trashed_at desc, id limit ${limit}::integer`)
        return rows.map((row) => ({ ...row, trashed_at: new Date(row.trashed_at).toISOString() }))
      }),
  }
}

// Sets of ids are arrays: evaluated once, and looked up by the index.

/** Disjoint conditions on `node` whose union is the requested scope. */
type Branches = readonly SQL[]

function isMine({ userId }: RequestPrincipal): SQL {
  return sql`node.owner_id = ${userId}::uuid and node.trashed_at is null`
}

function isOthers({ userId }: RequestPrincipal): SQL {
  return sql`node.owner_id <> ${userId}::uuid and node.trashed_at is null`
}

function inScope<T>(scope: Scope, { mine, others }: { mine: T; others: T }): readonly T[] {
  switch (scope) {
    case 'mine':
      return [mine]
    case 'shared_with_me':
      return [others]
    case 'all':
      return [mine, others]
  }
}

/** Own nodes at the top level, and the topmost readable nodes of others. */
function topBranches(principal: RequestPrincipal, scope: Scope): Branches {
  const zero = sql`'00000000-0000-0000-0000-000000000000'::uuid`
  return inScope(scope, {
    // The expression of the index.
    mine: sql`${isMine(principal)} and coalesce(node.parent_id, ${zero}) = ${zero}`,
    others: sql`${isOthers(principal)} and ${rankOn(sql`node.parent_id`, principal)} is null
      and node.id = any (array(select share.resource_id from share
        where share.resource_type = 'node'
          and is_granted_to(share.principal_type, share.principal_id, ${principalArguments(principal)})))`,
  })
}

/** Read access to a folder includes its content, and a tree has one owner. */
function insideBranches(principal: RequestPrincipal, folderId: string, scope: Scope): Branches {
  return [sql`node.parent_id = ${folderId}::uuid and ${scopeCondition(principal, scope)}`]
}

function scopeCondition(principal: RequestPrincipal, scope: Scope): SQL {
  if (scope === 'all') return sql`node.trashed_at is null`
  return scope === 'mine' ? isMine(principal) : isOthers(principal)
}

function readableBranches(principal: RequestPrincipal, scope: Scope): Branches {
  return inScope(scope, {
    mine: isMine(principal),
    others: sql`${isOthers(principal)}
      and node.id = any (array(select node_id from node_grants(${principalArguments(principal)})))`,
  })
}

/** The common table expression of `isBelow`: a folder and all folders below it. */
function foldersBelow(folderId: string): SQL {
  return sql`
    with recursive folder (id) as (
      select ${folderId}::uuid
      union all
      select child.id
      from folder cross join lateral (
        select id from node
        where parent_id = folder.id and kind = 'folder' and trashed_at is null offset 0) child)`
}

function isBelow(principal: RequestPrincipal, scope: Scope): SQL {
  return sql`node.parent_id = any (array(select folder.id from folder)) and ${scopeCondition(principal, scope)}`
}

/**
 * Not in the mark and the id behind a name that another file has. Only the first condition is one whose
 * share the planner can estimate, and so choose between the order by name and a sort of few matches.
 */
function hasTerm(term: string): SQL {
  const pattern = `%${term.replace(/[\\%_]/g, '\\$&')}%`
  return sql`node.name_key like ${pattern} and case
    when node.name_key like '%' || chr(1) || '%' then split_part(node.name_key, chr(1), 1) like ${pattern}
    else true end`
}

function filters(
  principal: RequestPrincipal,
  { mime_type: mimeType, retrieval_status: retrievalStatus }: SearchParams,
): SQL[] {
  const conditions: SQL[] = []
  if (mimeType?.endsWith('/*'))
    conditions.push(sql`starts_with(file.mime_type, ${mimeType.slice(0, -1)})`)
  else if (mimeType !== null) conditions.push(sql`file.mime_type = ${mimeType}`)
  if (retrievalStatus !== null) {
    const rank = rankOfStatus(retrievalStatus)
    conditions.push(sql`${statusRankOf(sql`node.id`, principal)} = ${rank}::integer`)
  }
  return conditions
}

const sortColumns: Record<Sort, { column: SQL; type: SQL; text: SQL }> = {
  name: { column: sql`node.name_key`, type: sql`text`, text: sql`node.name_key` },
  created_at: instantColumn(sql`node.created_at`),
  updated_at: instantColumn(sql`node.updated_at`),
  bytes: {
    column: sql`coalesce(file.bytes, 0)`,
    type: sql`bigint`,
    text: sql`coalesce(file.bytes, 0)::text`,
  },
}

function instantColumn(column: SQL) {
  const form = `YYYY-MM-DD"T"HH24:MI:SS.US"Z"`
  return {
    column,
    type: sql`timestamptz`,
    text: sql`to_char(${column} at time zone 'utc', ${form})`,
  }
}

type PageOrder = Pick<ChildrenParams, 'sort' | 'order' | 'type' | 'limit'>

/**
 * The first nodes after a position, folders before files. Each branch is limited to a page, so that an
 * index on its order reads no more than that.
 */
function page(branches: Branches, params: PageOrder, after: PagePosition | null): SQL {
  const { column, type, text } = sortColumns[params.sort]
  const direction = params.order === 'asc' ? sql`asc` : sql`desc`
  const isAfter = params.order === 'asc' ? sql`>` : sql`<`
  const kinds = (['folder', 'file'] as const).filter(
    (kind) =>
      (params.type === 'all' || params.type === kind) &&
      !(kind === 'folder' && after?.kind === 'file'),
  )
  if (kinds.length === 0) return emptyPage
  const parts = kinds.flatMap((kind, at) =>
    branches.map((branch) => {
      const rest =
        after?.kind === kind
          ? sql`and (${column}, node.id) ${isAfter} (${after.sortKey}::${type}, ${after.id}::uuid)`
          : sql``
      return sql`(select node.*, ${text} as sort_key, ${column} as sorted, ${at}::integer as section
        from node left join file on file.node_id = node.id
        where node.kind = ${kind} and ${branch} ${rest}
        order by ${column} ${direction}, node.id ${direction} limit ${params.limit}::integer)`
    }),
  )
  return sql`
    select part.*, row_number() over (
      order by section, sorted ${direction}, id ${direction}) as position
    from (${sql.join(parts, sql` union all `)}) part
    order by position limit ${params.limit}::integer`
}

/** Folders are requested, and the position is that of a file. */
const emptyPage = sql`select node.*, '' as sort_key, 1 as position from node where false`

/** Files by age; with `before`, the page that ends at that id. */
function listPage(principal: RequestPrincipal, params: FileListParams): SQL {
  const isBackward = params.before !== null && params.after === null
  const isUp = (params.order === 'asc') !== isBackward
  const direction = isUp ? sql`asc` : sql`desc`
  const conditions = [sql`node.kind = 'file'`]
  const comparison = (isForward: boolean) =>
    isForward === (params.order === 'asc') ? sql`>` : sql`<`
  if (params.after !== null) conditions.push(sql`node.id ${comparison(true)} ${params.after}::uuid`)
  if (params.before !== null) {
    conditions.push(sql`node.id ${comparison(false)} ${params.before}::uuid`)
  }
  if (params.purpose !== null) conditions.push(sql`file.purpose = ${params.purpose}`)
  const matches = sql.join(conditions, sql` and `)
  const parts = readableBranches(principal, params.scope).map(
    (branch) => sql`(select node.* from node join file on file.node_id = node.id
      where ${branch} and ${matches} order by node.id ${direction} limit ${params.limit}::integer)`,
  )
  const shown = params.order === 'asc' ? sql`asc` : sql`desc`
  return sql`
    select part.*, '' as sort_key, row_number() over (order by id ${shown}) as position
    from (select * from (${sql.join(parts, sql` union all `)}) every
      order by id ${direction} limit ${params.limit}::integer) part`
}
