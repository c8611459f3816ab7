import { type SQL, sql } from 'drizzle-orm'
import { almostAllKeywordsMax, type KeywordTier } from './keywords.ts'

/** Rankings of the passages of one index, as parts of a statement. `allowed` holds the visible files. */

export type Ranking = { readonly table: SQL; readonly hitsMax: number }

const noIds = sql`null::uuid as id, null::uuid as file_id, null::uuid as collection_id`

export const emptyVectorRanking = sql`select ${noIds}, null::float8 as distance where false`
export const emptyKeywordRanking = sql`select ${noIds}, null::float8 as keyword_score where false`

/** The nearest allowed passages by comparing all of them, if `condition` is true. */
export function rankByComparison(vector: SQL, { table, hitsMax }: Ranking, condition: SQL): SQL {
  // The sum keeps the planner from using the graph.
  return sql`
    select chunk.id, file_id, allowed.collection_id, chunk.e <=> ${vector} as distance
    from allowed join ${table} chunk using (file_id)
    where ${condition}
    order by (chunk.e <=> ${vector}) + 0 limit ${hitsMax}`
}

/** The nearest allowed passages by a scan of the graph, if `condition` is true. */
export function rankByGraph(vector: SQL, { table, hitsMax }: Ranking, condition: SQL): SQL {
  // "is true" keeps this a filter of the graph scan; a join would begin with the files.
  return sql`
    select near.id, file_id, allowed.collection_id, near.distance
    from (
      select chunk.id, chunk.file_id, chunk.e <=> ${vector} as distance
      from ${table} chunk
      where (chunk.file_id in (select allowed.file_id from allowed)) is true and ${condition}
      order by chunk.e <=> ${vector} limit ${hitsMax}) near
    join allowed using (file_id)`
}

/** The nearest passages of the index, before any check of rights. */
export function rankAllByGraph(vector: SQL, { table, hitsMax }: Ranking): SQL {
  return sql`
    select chunk.id, chunk.file_id, chunk.e <=> ${vector} as distance
    from ${table} chunk
    order by chunk.e <=> ${vector} limit ${hitsMax}`
}

/** The allowed passages with any of the keywords. */
export function rankByKeywords(keywords: string, ranking: Ranking): SQL {
  return selectByKeywords(keywords, ranking, {
    tier: 'any',
    collectionId: sql`allowed.collection_id,`,
    join: sql`join allowed using (file_id)`,
  })
}

/** The passages of the index that match a tier, before any check of rights. */
export function rankAllByKeywords(keywords: string, ranking: Ranking, tier: KeywordTier): SQL {
  return selectByKeywords(keywords, ranking, { tier, collectionId: sql``, join: sql`` })
}

/**
 * Passages with all keywords score above 1/2, with all but one above 1/4, so that a tier with enough
 * hits needs no wider one.
 */
function selectByKeywords(
  keywords: string,
  { table, hitsMax }: Ranking,
  { tier, collectionId, join }: { tier: KeywordTier; collectionId: SQL; join: SQL },
): SQL {
  const rank = sql`ts_rank(chunk.tsv, query.any, 33)`
  return sql`
    select chunk.id, file_id, ${collectionId}
      (case when chunk.tsv @@ query.all then 0.5 + ${rank} / 2
        when chunk.tsv @@ query.almost then 0.25 + ${rank} / 4
        else ${rank} / 4 end)::float8 as keyword_score
    from (${selectTierQueries(keywords)}) query
    join ${table} chunk on chunk.tsv @@ query.${sql.identifier(tier)}
    ${join}
    order by keyword_score desc, chunk.id limit ${hitsMax}`
}

/** One full text query per tier; `almost` is null outside its range. */
function selectTierQueries(keywords: string): SQL {
  const all = sql`plainto_tsquery('simple', ${keywords})`
  const list = sql`string_to_array(${all}::text, ' & ')`
  return sql`
    select ${all} as all, replace(${all}::text, ' & ', ' | ')::tsquery as any,
      (select string_agg(array_to_string(array_remove(${list}, word), ' & '), ' | ')::tsquery
        from unnest(${list}) word
        where cardinality(${list}) between 3 and ${almostAllKeywordsMax}) as almost`
}
