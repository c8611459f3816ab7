import { type SQL, sql } from 'drizzle-orm'
import type { Attributes } from '#files/files.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { callerArgs, uuidArray } from '#retrieval/sql-store.ts'
import type {
  Collection,
  FileCounts,
  FileMembership,
  Member,
  MemberFilter,
  Page,
  PageRequest,
} from './collections.ts'
import { countsByState, type Handle, readPage } from './store.ts'

/** The members of a collection that a caller may see, and the memberships of a file. */

type MembersOf = Pick<Collection, 'id' | 'accessMode'>

export async function listMembers(
  handle: Handle,
  caller: RequestPrincipal,
  params: { collection: MembersOf; page: PageRequest; filter: MemberFilter },
): Promise<Page<Member>> {
  const { collection, page, filter } = params
  const { items, hasMore } = await readPage(sql`member.file_id`, page, (where, orderBy, limit) =>
    handle.execute<MemberRow>(sql`
      ${selectMembers(caller, collection)} and ${where} and ${matches(filter)}
      order by ${orderBy} limit ${limit}`),
  )
  return { items: items.map(memberOf), hasMore }
}

export async function findMembers(
  handle: Handle,
  caller: RequestPrincipal,
  params: { collection: MembersOf; fileIds: readonly string[] },
): Promise<readonly Member[]> {
  const rows = await handle.execute<MemberRow>(sql`
    ${selectMembers(caller, params.collection)}
    and member.file_id = any(${uuidArray(params.fileIds)})
    order by member.file_id`)
  return rows.map(memberOf)
}

export async function countMembers(
  handle: Handle,
  caller: RequestPrincipal,
  params: { collection: MembersOf; filter: MemberFilter },
): Promise<FileCounts> {
  const [counts] = await handle.execute<FileCounts>(sql`
    select ${countsByState}
    from (${selectMembers(caller, params.collection)} and ${matches(params.filter)}) found`)
  return counts ?? { total: 0, completed: 0, inProgress: 0, failed: 0 }
}

type MembershipRow = Omit<FileMembership, 'sharedBy' | 'addedAt'> & {
  sharerId: string
  sharerName: string | null
  addedMs: number
}

/** All collections that a file is in. */
export async function listMemberships(
  handle: Handle,
  fileId: string,
  max: number,
): Promise<Page<FileMembership>> {
  const rows = await handle.execute<MembershipRow>(sql`
    select member.collection_id as "collectionId", collection.name,
      collection.owner_id as "ownerId", owner.subject as "ownerName",
      collection.access_mode as "accessMode", member.followed as "isFromFolder",
      coalesce(member.shared_by, member.added_by) as "sharerId", sharer.subject as "sharerName",
      collection.access_mode = 'collection'
        and may_share_node(member.file_id, coalesce(member.shared_by, member.added_by)) as "isOpen",
      (extract(epoch from member.added_at) * 1000)::float8 as "addedMs"
    from collection_file member
    join collection on collection.id = member.collection_id
    left join app_user owner on owner.id = collection.owner_id
    left join app_user sharer on sharer.id = coalesce(member.shared_by, member.added_by)
    where member.file_id = ${fileId}::uuid
    order by member.collection_id limit ${max + 1}`)
  const items = rows.slice(0, max).map(({ sharerId, sharerName, addedMs, ...row }) => ({
    ...row,
    sharedBy: { id: sharerId, name: sharerName },
    addedAt: new Date(addedMs),
  }))
  return { items, hasMore: rows.length > max }
}

/** Locks the membership; returns its own attributes. */
export async function lockMembership(
  handle: Handle,
  collectionId: string,
  fileId: string,
): Promise<{ attributes: Attributes; isFromFolder: boolean } | undefined> {
  const [row] = await handle.execute<{ attributes: string; followed: boolean }>(sql`
    select attributes::text as attributes, followed from collection_file
    where collection_id = ${collectionId}::uuid and file_id = ${fileId}::uuid for update`)
  if (row === undefined) return undefined
  return { attributes: JSON.parse(row.attributes), isFromFolder: row.followed }
}

function matches({ states, batchId }: MemberFilter): SQL {
  const hasState =
    states === null ? sql`true` : sql`progress.state = any(${`{${states.join(',')}}`}::text[])`
  const isInBatch = batchId === null ? sql`true` : sql`member.batch_id = ${batchId}::uuid`
  return sql`${hasState} and ${isInBatch}`
}

type MemberRow = Omit<Member, 'bytes' | 'attributes' | 'error' | 'addedAt'> & {
  bytes: string
  attributes: string
  errorCode: string | null
  errorMessage: string | null
  addedMs: number
}

/** Callers append further conditions. */
function selectMembers(caller: RequestPrincipal, { id, accessMode }: MembersOf): SQL {
  const isReadable = sql`member.file_id in (select node_id from node_roles(${callerArgs(caller)}))`
  const isVisible =
    accessMode === 'collection'
      ? sql`(member.file_id in (select file_id from opened_files(${id}::uuid)) or ${isReadable})`
      : isReadable
  return sql`
    select member.file_id as "fileId", node.name as filename, file.bytes::text as bytes,
      (file.attributes || member.attributes)::text as attributes, progress.state, progress.stage,
      progress.error_code as "errorCode", progress.error_message as "errorMessage",
      progress.chunks, member.followed as "isFromFolder",
      (extract(epoch from member.added_at) * 1000)::float8 as "addedMs"
    from collection_file member
    join node on node.id = member.file_id and node.trashed_at is null
    join file on file.node_id = node.id
    join collection_file_state progress
      on progress.collection_id = member.collection_id and progress.file_id = member.file_id
    where member.collection_id = ${id}::uuid and ${isVisible}`
}

function memberOf({ errorCode: code, errorMessage, addedMs, ...row }: MemberRow): Member {
  const hasError = code !== null && row.state !== 'done'
  return {
    ...row,
    bytes: Number(row.bytes),
    attributes: JSON.parse(row.attributes),
    error: hasError ? { code, message: errorMessage ?? '' } : null,
    addedAt: new Date(addedMs),
  }
}

/** All members of a collection of access mode `collection`, and those that everyone who sees it finds. */
export async function readMemberIds(
  handle: Handle,
  collectionId: string,
): Promise<{ all: ReadonlySet<string>; open: ReadonlySet<string> }> {
  const rows = await handle.execute<{ id: string; open: boolean }>(sql`
    select member.file_id as id, opened.file_id is not null as open
    from collection_file member
    left join opened_files(${collectionId}::uuid) opened on opened.file_id = member.file_id
    where member.collection_id = ${collectionId}::uuid`)
  const open = rows.filter((row) => row.open)
  return { all: new Set(rows.map(({ id }) => id)), open: new Set(open.map(({ id }) => id)) }
}
