import { type SQL, sql } from 'drizzle-orm'
import { createQueryRunner } from '#db/query-runner.ts'
import type { NodeView } from '#files/files.ts'
import type { FilesDatabase } from '#files/tree/store.ts'
import {
  arrayText,
  millis,
  principalArguments,
  rankOfStatus,
  rankOn,
  readView,
  readViews,
  type SortedView,
  statusRankOf,
} from '#files/view-store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Order, PagePosition, Sort } from './cursor.ts'
import type {
  ChildrenParams,
  ListParams,
  PathFolder,
  Scope,
  SearchParams,
  TrashedItem,
} from './listing.ts'

type Rows = Promise<readonly SortedView[]>

/** Lists of what a caller may read, a page at a time. */
export function createListingStore({ drizzle }: FilesDatabase) {
  const ask = createQueryRunner()
  const read = (caller: RequestPrincipal, page: SQL): Rows =>
    ask(() => readViews(drizzle, caller, page))
  return {
    view: (caller: RequestPrincipal, id: string): Promise<NodeView | undefined> =>
      ask(() => readView(drizzle, caller, id)),

    readable: (caller: RequestPrincipal, ids: readonly string[]): Promise<ReadonlySet<string>> =>
      ask(async () => {
        const rows = await drizzle.execute<{ id: string }>(sql`
          select id from node
          where id = any(${arrayText(ids)}::uuid[]) and kind = 'file' and trashed_at is null
            and ${rankOn(sql`id`, caller)} is not null`)
        return new Set(rows.map(({ id }) => id))
      }),

    /** The folders above one, from the top, as far as the caller may read them. */
    path: (caller: RequestPrincipal, id: string): Promise<readonly PathFolder[]> =>
      ask(async () =>
        drizzle.execute<PathFolder>(sql`
          with recursive up (id, name, parent_id, height) as (
            select id, name, parent_id, 0 from node where id = ${id}::uuid
            union all
            select parent.id, parent.name, parent.parent_id, up.height + 1
            from up join node parent on parent.id = up.parent_id)
          select id, name from up
          where height > 0 and ${rankOn(sql`up.id`, caller)} is not null
          order by height desc`),
      ),

    list: (caller: RequestPrincipal, asked: ListParams): Rows =>
      read(caller, listPage(caller, asked)),

    children: (
      caller: RequestPrincipal,
      asked: ChildrenParams,
      behind: PagePosition | null,
    ): Rows => {
      const branches =
        asked.folderId === null
          ? topBranches(caller, asked.scope)
          : insideBranches(caller, asked.folderId, asked.scope)
      return read(caller, page(branches, asked, behind))
    },

    search: (
      caller: RequestPrincipal,
      asked: SearchParams & { words: readonly string[] },
      behind: PagePosition | null,
    ): Rows => {
      const conditions = [...asked.words.map(hasWord), ...filters(caller, asked)]
      const matches = sql.join(conditions, sql` and `)
      const { folderId, scope } = asked
      const isNarrowed = asked.mimeType !== null || asked.retrievalStatus !== null
      const type = isNarrowed ? 'file' : 'all'
      const order = { sort: 'name', order: 'asc', type, limit: asked.limit } as const
      const within = folderId === null ? readableBranches(caller, scope) : [isBelow(caller, scope)]
      const branches = within.map((branch) => sql`${branch} and ${matches}`)
      const found = page(branches, order, behind)
      return read(caller, folderId === null ? found : sql`${foldersBelow(folderId)} ${found}`)
    },

    trash: (
      caller: RequestPrincipal,
      { limit, since }: { limit: number; since: Date },
    ): Promise<readonly TrashedItem[]> =>
      ask(async () => {
        const rows = await drizzle.execute<Omit<TrashedItem, 'trashedAt'> & { ms: number }>(sql`
          select id, kind, name, ${millis(sql`trashed_at`)} as ms from node
          where owner_id = ${caller.userId}::uuid and trash_id = id
            and trashed_at > ${since.toISOString()}::timestamptz
          order by trashed_at desc, id limit ${limit}::integer`)
        return rows.map(({ ms, ...item }) => ({ ...item, trashedAt: new Date(ms) }))
      }),
  }
}

// Sets of ids are arrays: those are made once, and the planner goes by the index for each of them.

/** Conditions on `node` that, together, hold for what the caller asks for, each without the others. */
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

/** Own nodes at the top, and of the nodes of others the topmost that the caller may read. */
function topBranches(caller: RequestPrincipal, scope: Scope): Branches {
  const zero = sql`'00000000-0000-0000-0000-000000000000'::uuid`
  return inScope(scope, {
    // As the index has it.
    mine: sql`${isMine(caller)} and coalesce(node.parent_id, ${zero}) = ${zero}`,
    others: sql`${isOthers(caller)} and ${rankOn(sql`node.parent_id`, caller)} is null
      and node.id = any (array(select share.resource_id from share
        where share.resource_type = 'node'
          and is_granted_to(share.principal_type, share.principal_id, ${principalArguments(caller)})))`,
  })
}

/** Who may read a folder may read what is in it. A tree has one owner. */
function insideBranches(caller: RequestPrincipal, folderId: string, scope: Scope): Branches {
  return [sql`node.parent_id = ${folderId}::uuid and ${whose(caller, scope)}`]
}

function whose(caller: RequestPrincipal, scope: Scope): SQL {
  if (scope === 'all') return sql`node.trashed_at is null`
  return scope === 'mine' ? isMine(caller) : isOthers(caller)
}

function readableBranches(caller: RequestPrincipal, scope: Scope): Branches {
  return inScope(scope, {
    mine: isMine(caller),
    others: sql`${isOthers(caller)}
      and node.id = any (array(select node_id from node_grants(${principalArguments(caller)})))`,
  })
}

/** A folder and all folders below it, for `isBelow`. */
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

function isBelow(caller: RequestPrincipal, scope: Scope): SQL {
  return sql`node.parent_id = any (array(select folder.id from folder)) and ${whose(caller, scope)}`
}

function hasWord(word: string): SQL {
  return sql`node.name_key like ${`%${word.replace(/[\\%_]/g, '\\$&')}%`}`
}

function filters(caller: RequestPrincipal, { mimeType, retrievalStatus }: SearchParams): SQL[] {
  const found: SQL[] = []
  if (mimeType?.endsWith('/*'))
    found.push(sql`starts_with(file.mime_type, ${mimeType.slice(0, -1)})`)
  else if (mimeType !== null) found.push(sql`file.mime_type = ${mimeType}`)
  if (retrievalStatus !== null) {
    const rank = rankOfStatus(retrievalStatus)
    found.push(sql`${statusRankOf(sql`node.id`, caller)} = ${rank}::integer`)
  }
  return found
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

type PageOrder = {
  readonly sort: Sort
  readonly order: Order
  readonly type: 'all' | 'file' | 'folder'
  readonly limit: number
}

/**
 * The first nodes behind a position: all folders before all files. Each branch gives no more than a
 * page, so that where there is an index for its order no more than a page is read.
 */
function page(branches: Branches, asked: PageOrder, behind: PagePosition | null): SQL {
  const { column, type, text } = sortColumns[asked.sort]
  const direction = asked.order === 'asc' ? sql`asc` : sql`desc`
  const isBehind = asked.order === 'asc' ? sql`>` : sql`<`
  const kinds = (['folder', 'file'] as const).filter(
    (kind) =>
      (asked.type === 'all' || asked.type === kind) &&
      !(kind === 'folder' && behind?.kind === 'file'),
  )
  if (kinds.length === 0) return nothing
  const parts = kinds.flatMap((kind, at) =>
    branches.map((branch) => {
      const rest =
        behind?.kind === kind
          ? sql`and (${column}, node.id) ${isBehind} (${behind.sortKey}::${type}, ${behind.id}::uuid)`
          : sql``
      return sql`(select node.*, ${text} as sort_key, ${column} as sorted, ${at}::integer as section
        from node left join file on file.node_id = node.id
        where node.kind = ${kind} and ${branch} ${rest}
        order by ${column} ${direction}, node.id ${direction} limit ${asked.limit}::integer)`
    }),
  )
  return sql`
    select part.*, row_number() over (
      order by section, sorted ${direction}, id ${direction}) as position
    from (${sql.join(parts, sql` union all `)}) part
    order by position limit ${asked.limit}::integer`
}

/** As when only folders are asked for, from behind a file on. */
const nothing = sql`select node.*, '' as sort_key, 1 as position from node where false`

/** Files by age; asked for those before an id, the page that ends there. */
function listPage(caller: RequestPrincipal, asked: ListParams): SQL {
  const isBackward = asked.before !== null && asked.after === null
  const isUp = (asked.order === 'asc') !== isBackward
  const direction = isUp ? sql`asc` : sql`desc`
  const conditions = [sql`node.kind = 'file'`]
  const comparison = (isForward: boolean) =>
    isForward === (asked.order === 'asc') ? sql`>` : sql`<`
  if (asked.after !== null) conditions.push(sql`node.id ${comparison(true)} ${asked.after}::uuid`)
  if (asked.before !== null) {
    conditions.push(sql`node.id ${comparison(false)} ${asked.before}::uuid`)
  }
  if (asked.purpose !== null) conditions.push(sql`file.purpose = ${asked.purpose}`)
  const matches = sql.join(conditions, sql` and `)
  const parts = readableBranches(caller, asked.scope).map(
    (branch) => sql`(select node.* from node join file on file.node_id = node.id
      where ${branch} and ${matches} order by node.id ${direction} limit ${asked.limit}::integer)`,
  )
  const shown = asked.order === 'asc' ? sql`asc` : sql`desc`
  return sql`
    select part.*, '' as sort_key, row_number() over (order by id ${shown}) as position
    from (select * from (${sql.join(parts, sql` union all `)}) every
      order by id ${direction} limit ${asked.limit}::integer) part`
}
