import { sql } from 'drizzle-orm'
import { chunkTable, vectorText, vectorType } from '#retrieval/index/store.ts'
import { uuidArray } from '#retrieval/sql-store.ts'
import type { Handle, ReindexDatabase } from './store.ts'

/** The actual content of an index, for comparison with `file_index`. */

/** A file of an index, as it was when it was read. */
export type VerifiedFile = { readonly fileId: string; readonly updatedAt: string }

/** Files whose number of passages differs from the recorded one. */
export async function findMiscounted(
  handle: Handle,
  indexId: number,
  filesMax: number,
): Promise<readonly VerifiedFile[]> {
  return handle.execute<VerifiedFile>(sql`
    select known.file_id as "fileId", known.updated_at::text as "updatedAt" from file_index known
    left join (
      select file_id, count(*) as passages from ${chunkTable(indexId)} group by file_id) found
      on found.file_id = known.file_id
    where known.index_id = ${indexId} and known.state = 'done'
      and known.chunks <> coalesce(found.passages, 0)
    limit ${filesMax}`)
}

export type SampledPassage = VerifiedFile & {
  readonly id: string
  readonly text: string
  readonly filename: string
}

/** One passage of each of some random files. */
export async function samplePassages(
  handle: Handle,
  indexId: number,
  filesMax: number,
): Promise<readonly SampledPassage[]> {
  return handle.execute<SampledPassage>(sql`
    select passage.id, passage.file_id as "fileId", picked.updated_at::text as "updatedAt",
      passage.text, node.name as filename
    from (
      select file_id, updated_at from file_index
      where index_id = ${indexId} and state = 'done' and chunks > 0
      order by random() limit ${filesMax}) picked
    cross join lateral (
      select chunk.id, chunk.file_id, chunk.text from ${chunkTable(indexId)} chunk
      where chunk.file_id = picked.file_id order by random() limit 1) passage
    join node on node.id = passage.file_id`)
}

/** Whether a search for the vector of a passage finds it, or passages as near. */
export async function isFound(
  handle: Handle,
  { indexId, kind }: { indexId: number; kind: ReindexDatabase['kind'] },
  { passageId, vector }: { passageId: string; vector: Float32Array },
): Promise<boolean> {
  const query = sql`${vectorText(vector)}::${vectorType(kind)}`
  const table = chunkTable(indexId)
  const [row] = await handle.execute<{
    own: number | null
    last: number | null
    count: number
  }>(sql`
    with nearest as materialized (
      select id, e <=> ${query} as distance from ${table}
      order by e <=> ${query} limit ${nearestMax})
    select (select e <=> ${query} from ${table} where id = ${passageId}::uuid) as own,
      (select max(distance) from nearest) as last,
      (select count(*)::integer from nearest) as count`)
  if (row?.own === null || row?.own === undefined) return false
  return row.count < nearestMax || row.own <= (row.last ?? 0) + distanceTolerance
}

const nearestMax = 10
/** Half precision and models that are not deterministic cause small differences. */
const distanceTolerance = 0.01

/** The number of passages, and their average length in characters. */
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
          select text from ${chunkTable(indexId)} limit ${sampledMax}) sampled), 0)::float8 as chars`)
  return row ?? { passages: 0, chars: 0 }
}

const sampledMax = 1_000
