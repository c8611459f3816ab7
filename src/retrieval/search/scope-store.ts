import { type SQL, sql } from 'drizzle-orm'
import { file, node } from '#db/schema/files.ts'
import { collection, collectionFile, fileIndex } from '#db/schema/retrieval.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import { callerArgs, collectionRank, textArray, uuidArray } from '#retrieval/sql-store.ts'
import type { Filter } from './search.ts'

/** Decides which files a search may return, and in which index each is searched. */

export type SearchScope = {
  readonly caller: RequestPrincipal
  /** A file in several of them is returned for the first. */
  readonly collectionIds: readonly string[]
  readonly filters: readonly Filter[]
}

/**
 * Common table expressions that end with `member`: each visible file once, with its collection and
 * the one index that is searched for it, which is the target of a reindex once the file is there.
 * A changed file is found by its former content until the new one is indexed.
 *
 * Every table is materialized, since the embedded engine has no statistics and would otherwise scan
 * whole tables per file. For the same reason "is true" hides conditions from the planner: of the
 * indexes on file_index, only the one by file is efficient.
 *
 * `candidates`: only files in a preceding table `candidate` are considered.
 */
export function visibleFileTables(
  { caller, collectionIds, filters }: SearchScope,
  among: 'all files' | 'candidates',
): SQL {
  const conditions = filters.map((filter) => sql`and ${conditionOf(filter)}`)
  const needsFile = filters.some(({ field }) => !nodeFields.has(field))
  const { readable, opened, nodes, fileIndexes } =
    among === 'candidates' ? candidateSources(caller) : allSources(caller)
  return sql`
    readable as materialized (${readable}),
    searched as materialized (
      select wanted.position, collection.id, collection.access_mode, collection.index_id,
        collection.target_index_id
      from json_array_elements_text(${JSON.stringify(collectionIds)}::json)
        with ordinality as wanted (id, position)
      join ${collection} on collection.id = wanted.id::uuid
      where ${collectionRank(caller)} is not null),
    entry as materialized (
      ${opened}
      union all
      select searched.*, held.file_id, held.attributes
      from searched cross join readable
      join ${collectionFile} held
        on held.collection_id = searched.id and held.file_id = readable.node_id),
    member as materialized (
      select distinct on (entry.file_id) entry.file_id, entry.id as collection_id,
        progress.index_id, progress.chunks
      from entry
      join ${nodes} on node.id = entry.file_id and node.trashed_at is null
      ${needsFile ? sql`join ${file} on file.node_id = entry.file_id` : sql``}
      join ${fileIndexes} progress on progress.file_id = entry.file_id
        and (progress.index_id in (entry.index_id, entry.target_index_id)) is true
        and (progress.state = 'done' or (progress.state = 'pending' and progress.sha256 is not null))
          is true
      where true ${sql.join(conditions, sql` `)}
      order by entry.file_id, entry.position, progress.state,
        progress.index_id = entry.target_index_id desc nulls last)`
}

/** All files that the caller may read, and all that collections of access mode `collection` open. */
function allSources(caller: RequestPrincipal) {
  return {
    readable: sql`select node_id from node_roles(${callerArgs(caller)})`,
    opened: sql`
      select searched.*, held.file_id, held.attributes
      from searched
      cross join lateral opened_files(searched.id) opened
      join ${collectionFile} held
        on held.collection_id = searched.id and held.file_id = opened.file_id
      where searched.access_mode = 'collection'`,
    nodes: sql`${node}`,
    fileIndexes: sql`${fileIndex}`,
  }
}

/** The same for the candidates, one lookup each; `offset 0` keeps the planner from table scans. */
function candidateSources(caller: RequestPrincipal) {
  return {
    readable: sql`
      select file_id as node_id from candidate
      where node_role(file_id, ${callerArgs(caller)}) is not null`,
    opened: sql`
      select searched.*, held.file_id, held.attributes
      from searched
      cross join candidate
      join ${collectionFile} held
        on held.collection_id = searched.id and held.file_id = candidate.file_id
      where searched.access_mode = 'collection'
        and may_share_node(held.file_id, coalesce(held.shared_by, held.added_by))`,
    nodes: sql`lateral (select * from ${node} one where one.id = entry.file_id offset 0) node`,
    fileIndexes: sql`
      lateral (select * from ${fileIndex} one where one.file_id = entry.file_id offset 0)`,
  }
}

const nodeFields = new Set(['file_id', 'owner_id', 'folder_id', 'filename'])

function conditionOf({ field, value }: Filter): SQL {
  const values = typeof value === 'string' ? [value] : value
  const uuids = uuidArray(values.filter(isUuid))
  switch (field) {
    case 'file_id':
      return sql`node.id = any(${uuids})`
    case 'owner_id':
      return sql`node.owner_id = any(${uuids})`
    case 'folder_id':
      return sql`node.id in (
        with recursive below (id) as (
          select child.id from node child where child.parent_id = any(${uuids})
          union
          select child.id from below join node child on child.parent_id = below.id)
        select below.id from below)`
    case 'filename':
      return sql`node.name = any(${textArray(values.map((text) => text.normalize('NFC')))})`
    case 'mime_type':
      return sql`file.mime_type = any(${textArray(values)})`
    default:
      // Numbers and booleans compare as JSON text; a missing attribute equals nothing.
      return sql`(file.attributes || entry.attributes) ->> ${field} = any(${textArray(values)})`
  }
}
