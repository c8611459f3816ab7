import { sql } from 'drizzle-orm'
import type { QueryRunner } from '#db/query-runner.ts'
import { conversationItem, response, responseItem } from '#db/schema/responses.ts'
import { assert } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import type { PageRequest, ResponseStatus, StoredItem } from './response.ts'
import {
  type Handle,
  idRows,
  isKept,
  itemsOf,
  keyOf,
  readPage,
  type StoreOptions,
} from './row-store.ts'
import type { Chain } from './stored.ts'

/** The retention of a chain is extended once this part of it has passed, not on every turn. */
const extendAfter = 1 / 32

/** Reads the items of responses and of the responses that they continue. */
export function chainTables(
  drizzle: Handle,
  { limits, now, ttlS, runQuery }: StoreOptions & { runQuery: QueryRunner },
) {
  const { chainMax, storedCharsMax } = limits

  /** A response and its previous responses, newest first, up to the first missing one. */
  const chainOf = (ownerId: string, id: string) => sql`recursive chain as (
    select response.*, 1 as depth from ${response}
    where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid and ${isKept(now())}
    union all
    select response.*, chain.depth + 1 from chain
    join ${response} on response.id = chain.previous_response_id
    where response.owner_id = ${ownerId}::uuid and ${isKept(now())}
      and chain.depth < ${chainMax}::integer)`

  /** Skips locked rows: their lock holder extends the retention too, or ends the response. */
  async function extendRetention(ids: readonly string[], expiresAt: Date): Promise<void> {
    await drizzle.execute(sql`
      update ${response} set expires_at = ${expiresAt.toISOString()}::timestamptz
      where id in (select id from ${response} where id in ${idRows(ids)}
        for no key update skip locked)`)
  }

  const tooLarge = (what: string, param: string) =>
    new AppError('request_too_large', `${what} exceed the limit of ${storedCharsMax} bytes.`, {
      param,
    })

  return {
    /**
     * Input and output of the response and of all previous ones, oldest first. Undefined if one of
     * them does not exist. Extends the retention of the whole chain. Throws `invalid_request` if the
     * chain has the maximum length, `request_too_large` if it holds more than one response may.
     */
    chain: (ownerId: string, id: string) =>
      runQuery(async (): Promise<Chain | undefined> => {
        const ttlMs = ttlS() * 1000
        const extendBefore = new Date(now().getTime() + ttlMs * (1 - extendAfter))
        const links = await drizzle.execute<Link>(sql`
          with ${chainOf(ownerId, id)}
          select id, previous_response_id as previous, status,
            expires_at < ${extendBefore.toISOString()}::timestamptz as is_due,
            (select coalesce(sum(octet_length(json)), 0)::float8 from ${responseItem}
              where response_id = chain.id) as bytes
          from chain order by depth`)
        const [newest] = links
        if (newest === undefined) return undefined
        if (links.length >= chainMax) throw tooLong(chainMax)
        if (links.at(-1)?.previous !== null) return undefined
        const bytes = links.reduce((sum, link) => sum + link.bytes, 0)
        if (bytes > storedCharsMax) throw tooLarge('The previous responses', 'previous_response_id')

        const items = await readItems(drizzle, links.map((link) => link.id).reverse())
        const due = links.filter((link) => link.is_due).map((link) => link.id)
        if (due.length > 0) await extendRetention(due, new Date(now().getTime() + ttlMs))
        return { status: newest.status, items }
      }),

    /**
     * Items of responses and conversations by id, the newest of those with the same id. Unknown ids
     * are left out. Throws `request_too_large` for more than one response may hold.
     */
    findItems: (ownerId: string, itemIds: readonly string[]) =>
      runQuery(async (): Promise<ReadonlyMap<string, StoredItem>> => {
        const wanted = new Map(itemIds.map((id) => [keyOf(id), id]))
        if (wanted.size === 0) return new Map()
        const rows = await drizzle.execute<{ key: string; json: string | null }>(sql`
          select key, case when sum(octet_length(json)) over () <= ${storedCharsMax}::bigint
            then json end as json
          from ${idRows([...wanted.keys()])} as wanted(key)
          cross join lateral (
            (select item.json, item.created_at, item.position from ${responseItem} as item
              join ${response} on response.id = item.response_id
              where item.owner_id = ${ownerId}::uuid and item.item_id = key and ${isKept(now())}
              order by item.created_at desc, item.position desc limit 1)
            union all
            (select item.json, item.created_at, item.position from ${conversationItem} as item
              where item.owner_id = ${ownerId}::uuid and item.item_id = key
              order by item.created_at desc, item.position desc limit 1)
            order by created_at desc, position desc limit 1) as found`)
        const found = new Map<string, StoredItem>()
        for (const { key, json } of rows) {
          const id = wanted.get(key)
          if (json === null) throw tooLarge('The referenced items', 'input')
          if (id !== undefined) found.set(id, JSON.parse(json))
        }
        return found
      }),

    /**
     * The input of a response including all previous ones; undefined: no such response. Throws
     * `invalid_request` if `after` is none of these items.
     */
    listInputItems: (ownerId: string, id: string, page: PageRequest) => {
      const queries = sql`${chainOf(ownerId, id)},
        listed as (
          select item.item_id, item.json,
            row_number() over (order by chain.depth desc, item.direction, item.position) as place
          from chain cross join lateral ${itemsOf(sql`chain.id`)} as item
          where chain.depth > 1 or item.direction = 'input')`
      const found = sql`exists (select 1 from chain)`
      return runQuery(() => readPage(drizzle, { queries, found }, page, storedCharsMax))
    },
  }
}

type Link = {
  id: string
  previous: string | null
  status: ResponseStatus
  is_due: boolean
  bytes: number
}

/** Input and output of each response, in this order. */
async function readItems(drizzle: Handle, ids: readonly string[]): Promise<readonly StoredItem[]> {
  const [row] = await drizzle.execute<{ items: string }>(sql`
    select '[' || coalesce(string_agg(
      (select string_agg(json, ',' order by direction, position)
        from ${itemsOf(sql`link.id`)} as item), ',' order by link.place), '') || ']' as items
    from json_array_elements_text(${JSON.stringify(ids)}::json) with ordinality as link(id, place)`)
  assert(row, 'an aggregate has one row')
  return JSON.parse(row.items)
}

function tooLong(chainMax: number): AppError {
  return new AppError(
    'invalid_request',
    `A chain may hold at most ${chainMax} responses; start a new one with their items as input.`,
    { param: 'previous_response_id', code: 'previous_responses_too_many' },
  )
}
