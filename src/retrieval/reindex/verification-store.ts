import { sql } from 'drizzle-orm'
import { chunkTable, vectorText, vectorType } from '#retrieval/index/store.ts'
import type { Handle, ReindexDatabase } from '#retrieval/reindex/store.ts'
import { uuidArray } from '#retrieval/sql-store.ts'

/** What is really in an index, whatever was written down about it. */

/** Files of which another number of passages is there than was put there. */
export async function findUneven(
  handle: Handle,
  indexId: number,
  filesMax: number,
): Promise<readonly string[]> {
  const rows = await handle.execute<{ id: string }>(sql`
    select known.file_id as id from file_index known
    left join (
      select file_id, count(*) as passages from ${chunkTable(indexId)} group by file_id) found
      on found.file_id = known.file_id
    where known.index_id = ${indexId} and known.state = 'done'
      and known.chunks <> coalesce(found.passages, 0)
    limit ${filesMax}`)
  return rows.map(({ id }) => id)
}

export type Sample = { readonly id: string; readonly fileId: string; readonly text: string }

/** A passage of each of some files, other files each time. */
export async function samplePassages(
  handle: Handle,
  indexId: number,
  filesMax: number,
): Promise<readonly Sample[]> {
  return handle.execute<Sample>(sql`
    select passage.id, passage.file_id as "fileId", passage.text
    from (
      select file_id from file_index
      where index_id = ${indexId} and state = 'done' and chunks > 0
      order by random() limit ${filesMax}) picked
    cross join lateral (
      select chunk.id, chunk.file_id, chunk.text from ${chunkTable(indexId)} chunk
      where chunk.file_id = picked.file_id order by random() limit 1) passage`)
}

/** Whether a passage is among the nearest to its own vector, or as near as they are. */
export async function isFound(
  handle: Handle,
  { indexId, kind }: { indexId: number; kind: ReindexDatabase['kind'] },
  { passageId, vector }: { passageId: string; vector: Float32Array },
): Promise<boolean> {
  const asked = sql`${vectorText(vector)}::${vectorType(kind)}`
  const table = chunkTable(indexId)
  const [row] = await handle.execute<{
    own: number | null
    last: number | null
    count: number
  }>(sql`
    with nearest as materialized (
      select id, e <=> ${asked} as distance from ${table}
      order by e <=> ${asked} limit ${nearestMax})
    select (select e <=> ${asked} from ${table} where id = ${passageId}::uuid) as own,
      (select max(distance) from nearest) as last,
      (select count(*)::integer from nearest) as count`)
  if (row?.own === null || row?.own === undefined) return false
  return row.count < nearestMax || row.own <= (row.last ?? 0) + distanceTolerance
}

const nearestMax = 10
/** What rounding to half precision, and a model that is not quite the same twice, may make. */
const distanceTolerance = 0.01

/** What a model would have to read: so many passages, of so many characters each. */
export async function measurePassages(
  handle: Handle,
  indexId: number,
  collectionIds: readonly string[],
): Promise<{ passages: number; chars: number }> {
  const [row] = await handle.execute<{ passages: number; chars: number }>(sql`
    select coalesce((
        select sum(known.chunks) from file_index known
        where known.index_id = ${indexId} and known.file_id in (
          select file_id from collection_file
          where collection_id = any(${uuidArray(collectionIds)}))), 0)::float8 as passages,
      coalesce((
        select avg(length(text)) from (
          select text from ${chunkTable(indexId)} limit ${measuredMax}) measured), 0)::float8 as chars`)
  return row ?? { passages: 0, chars: 0 }
}

const measuredMax = 1_000
