import { type SQL, sql } from 'drizzle-orm'
import { almostAllWordsMax, type WordsTier } from './keyword-tier.ts'

/** The ways of searching a table of passages, as parts of a statement. */

export type Leg = { readonly table: SQL; readonly hitsMax: number }

/** What a leg begins with, where it has nothing. */
const nowhere = sql`null::uuid as id, null::uuid as file_id, null::uuid as collection_id`

export const noneNearest = sql`select ${nowhere}, null::float8 as distance where false`
export const noneMatching = sql`select ${nowhere}, null::float8 as word_score where false`

/** All that are in `allowed`, compared with one another, under a condition of the whole. */
export function comparedTo(vector: SQL, { table, hitsMax }: Leg, condition: SQL): SQL {
  // The sum keeps the graph out of it.
  return sql`
    select chunk.id, file_id, allowed.collection_id, chunk.e <=> ${vector} as distance
    from allowed join ${table} chunk using (file_id)
    where ${condition}
    order by (chunk.e <=> ${vector}) + 0 limit ${hitsMax}`
}

/** Those in `allowed`, as the graph comes by them, under a condition of the whole. */
export function foundByGraph(vector: SQL, { table, hitsMax }: Leg, condition: SQL): SQL {
  // "is true" keeps it a filter of the scan of the graph: as a join it would begin with the files.
  return sql`
    select near.id, file_id, allowed.collection_id, near.distance
    from (
      select chunk.id, chunk.file_id, chunk.e <=> ${vector} as distance
      from ${table} chunk
      where (chunk.file_id in (select allowed.file_id from allowed)) is true and ${condition}
      order by chunk.e <=> ${vector} limit ${hitsMax}) near
    join allowed using (file_id)`
}

/** The nearest of the whole index, whoever may find them. */
export function nearestOfAll(vector: SQL, { table, hitsMax }: Leg): SQL {
  return sql`
    select chunk.id, chunk.file_id, chunk.e <=> ${vector} as distance
    from ${table} chunk
    order by chunk.e <=> ${vector} limit ${hitsMax}`
}

/** Those in `allowed` with any of the words. */
export function matchingWords(words: string, leg: Leg): SQL {
  const collectionId = sql`allowed.collection_id,`
  return byWords(words, leg, { tier: 'any', collectionId, join: sql`join allowed using (file_id)` })
}

/** Those of a tier in the whole index, whoever may find them. */
export function matchingOfAll(words: string, leg: Leg, tier: WordsTier): SQL {
  return byWords(words, leg, { tier, collectionId: sql``, join: sql`` })
}

/**
 * Those with all of the words have scores above a half, those with all but one above a quarter, so that
 * a tier that has enough needs none after it.
 */
function byWords(
  words: string,
  { table, hitsMax }: Leg,
  { tier, collectionId, join }: { tier: WordsTier; collectionId: SQL; join: SQL },
): SQL {
  const rank = sql`ts_rank(chunk.tsv, asked.any, 33)`
  return sql`
    select chunk.id, file_id, ${collectionId}
      (case when chunk.tsv @@ asked.all then 0.5 + ${rank} / 2
        when chunk.tsv @@ asked.almost then 0.25 + ${rank} / 4
        else ${rank} / 4 end)::float8 as word_score
    from (${queriesOf(words)}) asked
    join ${table} chunk on chunk.tsv @@ asked.${sql.identifier(tier)}
    ${join}
    order by word_score desc, chunk.id limit ${hitsMax}`
}

/** The words by tier, as queries of a full text search; `almost` may be null. */
function queriesOf(words: string): SQL {
  const all = sql`plainto_tsquery('simple', ${words})`
  const every = sql`string_to_array(${all}::text, ' & ')`
  return sql`
    select ${all} as all, replace(${all}::text, ' & ', ' | ')::tsquery as any,
      (select string_agg(array_to_string(array_remove(${every}, word), ' & '), ' | ')::tsquery
        from unnest(${every}) word
        where cardinality(${every}) between 3 and ${almostAllWordsMax}) as almost`
}
