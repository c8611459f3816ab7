import { type SQL, sql } from 'drizzle-orm'
import { file, node, share } from '#db/schema/files.ts'
import { collection, collectionFile, fileIndex } from '#db/schema/retrieval.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Filter } from '#retrieval/search/search.ts'

/** What may be found: the one place that says which files a search looks into, and where. */

export type Scope = {
  readonly caller: RequestPrincipal
  /** The first that has a file speaks for it. */
  readonly collectionIds: readonly string[]
  readonly filters: readonly Filter[]
}

/** Texts as one text in the form of PostgreSQL's arrays, which has no character zero. */
export function textArray(texts: readonly string[]): SQL {
  const items = texts
    .filter((text) => !text.includes('\0'))
    .map((text) => `"${text.toWellFormed().replace(/["\\]/g, '\\$&')}"`)
  return sql`${`{${items.join(',')}}`}::text[]`
}

/** As the functions of the database take who asks: two arguments. */
export function asCaller({ userId, groups }: RequestPrincipal): SQL {
  return sql`${userId}::uuid, ${textArray(groups)}`
}

/** The caller's rank on `collection`, 1 to 4; null where it is hidden from them. */
export function rankOnCollection(caller: RequestPrincipal): SQL {
  return sql`(
    case when ${collection.ownerId} = ${caller.userId}::uuid then 4 else (
      select max(${share.role}) from ${share}
      where ${share.resourceType} = 'collection' and ${share.resourceId} = ${collection.id}
        and is_granted_to(${share.principalType}, ${share.principalId}, ${asCaller(caller)})) end)`
}

/**
 * Tables of a statement, of which `member` has each file that may be found once: with the collection
 * that it is found in and the one index that it is searched in, the target of a reindex once it is
 * there, the source until then. A file whose content has changed is found by its former content until
 * the new one is in its place.
 *
 * Each table is kept as it is, since the embedded engine has no statistics: left to itself it would
 * walk through whole tables for each file. For the same reason "is true" leaves one way to the places
 * of a file, by the file: another index leads to those of all files.
 *
 * `candidates`: only those files are asked about whose ids are in a table of this name before these.
 */
export function memberTables(
  { caller, collectionIds, filters }: Scope,
  among: 'all files' | 'candidates',
): SQL {
  const hasRole = sql`${rankOnCollection(caller)} is not null`
  const conditions = filters.map((filter) => sql`and ${conditionOf(filter)}`)
  const isOfFile = filters.some(({ field }) => !fieldsOfNode.has(field))
  const { readable, opened, nodes, places } =
    among === 'candidates' ? candidatesOf(caller) : allOf(caller)
  return sql`
    readable as materialized (${readable}),
    searched as materialized (
      select wanted.position, collection.id, collection.access_mode, collection.index_id,
        collection.target_index_id
      from json_array_elements_text(${JSON.stringify(collectionIds)}::json)
        with ordinality as wanted (id, position)
      join ${collection} on collection.id = wanted.id::uuid
      where ${hasRole}),
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
      ${isOfFile ? sql`join ${file} on file.node_id = entry.file_id` : sql``}
      join ${places} progress on progress.file_id = entry.file_id
        and (progress.index_id in (entry.index_id, entry.target_index_id)) is true
        and (progress.state = 'done' or (progress.state = 'pending' and progress.sha256 is not null))
          is true
      where true ${sql.join(conditions, sql` `)}
      order by entry.file_id, entry.position, progress.state,
        progress.index_id = entry.target_index_id desc nulls last)`
}

/** What the caller may read by rights on files, and what the collections have of all that is there. */
function allOf(caller: RequestPrincipal) {
  return {
    readable: sql`select node_id from node_roles(${asCaller(caller)})`,
    opened: sql`
      select searched.*, held.file_id, held.attributes
      from searched
      cross join lateral opened_files(searched.id) opened
      join ${collectionFile} held
        on held.collection_id = searched.id and held.file_id = opened.file_id
      where searched.access_mode = 'collection'`,
    nodes: sql`${node}`,
    places: sql`${fileIndex}`,
  }
}

/**
 * The same of the files in the table `candidate`, each asked about by itself; `offset 0` keeps it so,
 * where the planner would rather look through the whole table.
 */
function candidatesOf(caller: RequestPrincipal) {
  return {
    readable: sql`
      select file_id as node_id from candidate
      where node_role(file_id, ${asCaller(caller)}) is not null`,
    opened: sql`
      select searched.*, held.file_id, held.attributes
      from searched
      cross join candidate
      join ${collectionFile} held
        on held.collection_id = searched.id and held.file_id = candidate.file_id
      where searched.access_mode = 'collection'
        and may_share_node(held.file_id, coalesce(held.shared_by, held.added_by))`,
    nodes: sql`lateral (select * from ${node} one where one.id = entry.file_id offset 0) node`,
    places: sql`
      lateral (select * from ${fileIndex} one where one.file_id = entry.file_id offset 0)`,
  }
}

const fieldsOfNode = new Set(['file_id', 'owner_id', 'folder_id', 'filename'])

function conditionOf({ field, value }: Filter): SQL {
  const values = typeof value === 'string' ? [value] : value
  const uuids = sql`${`{${values.filter(isUuid).join(',')}}`}::uuid[]`
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
      // Numbers and booleans as their JSON text; what is not there is equal to nothing.
      return sql`(file.attributes || entry.attributes) ->> ${field} = any(${textArray(values)})`
  }
}
