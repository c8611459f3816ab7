import { sql } from 'drizzle-orm'
import type { QueryRunner } from '#db/query-runner.ts'
import { conversationItem, response, responseItem } from '#db/schema/responses.ts'
import { AppError } from '#lib/errors.ts'
import {
  type Page,
  type PageRequest,
  pageOf,
  type ResponseStatus,
  type StoredItem,
  unknownCursor,
} from '#responses/response.ts'
import type { Chain } from '#responses/stored.ts'
import { type Handle, idRows, isKept, itemsOf, keyOf, type StoreOptions } from './row-store.ts'

/** The retention of a chain is extended once this part of it has passed, not on every turn. */
const extendAfter = 1 / 32

export function chainTables(drizzle: Handle, options: StoreOptions & { runQuery: QueryRunner }) {
  const { runQuery } = options
  return {
    chain: (ownerId: string, id: string) =>
      runQuery(() => readChain(drizzle, { ownerId, id }, options)),
    findItems: (ownerId: string, itemIds: readonly string[]) =>
      runQuery(() => findItems(drizzle, { ownerId, itemIds }, options)),
    listInputItems: (ownerId: string, id: string, page: PageRequest) =>
      runQuery(() => listInputItems(drizzle, { ownerId, id, page }, options)),
  }
}

type Link = { id: string; previous: string | null; status: ResponseStatus; bytes: number }

/** A response and its previous responses, newest first, up to the first missing one. */
function chainOf(ownerId: string, id: string, { limits, now }: StoreOptions) {
  return sql`recursive chain as (
    select response.*, 1 as depth from ${response}
    where id = ${keyOf(id)} and owner_id = ${ownerId}::uuid and ${isKept(now())}
    union all
    select response.*, chain.depth + 1 from chain
    join ${response} on response.id = chain.previous_response_id
    where response.owner_id = ${ownerId}::uuid and ${isKept(now())}
      and chain.depth < ${limits.chainMax}::integer)`
}

async function readChain(
  drizzle: Handle,
  { ownerId, id }: { ownerId: string; id: string },
  options: StoreOptions,
): Promise<Chain | undefined> {
  const { limits, now } = options
  const links = await drizzle.execute<Link & { is_due: boolean }>(sql`
    with ${chainOf(ownerId, id, options)}
    select id, previous_response_id as previous, status,
      expires_at < ${extendBefore(options).toISOString()}::timestamptz as is_due,
      (select coalesce(sum(octet_length(json)), 0)::float8 from ${responseItem}
        where response_id = chain.id) as bytes
    from chain order by depth`)
  const [newest] = links
  if (newest === undefined) return undefined
  if (links.length >= limits.chainMax) throw tooLong(limits.chainMax)
  if (links.at(-1)?.previous !== null) return undefined
  const bytes = links.reduce((sum, link) => sum + link.bytes, 0)
  if (bytes > limits.storedCharsMax) {
    throw tooLarge('The previous responses', limits, 'previous_response_id')
  }

  const oldestFirst = links.map((link) => link.id).reverse()
  const items = await readItems(drizzle, oldestFirst)
  const due = links.filter((link) => link.is_due).map((link) => link.id)
  const expiresAt = new Date(now().getTime() + options.ttlS() * 1000)
  if (due.length > 0) await extendRetention(drizzle, due, expiresAt)
  return { status: newest.status, items }
}

function extendBefore({ ttlS, now }: StoreOptions): Date {
  return new Date(now().getTime() + ttlS() * 1000 * (1 - extendAfter))
}

/** Input and output of each response, in this order. */
async function readItems(drizzle: Handle, ids: readonly string[]): Promise<readonly StoredItem[]> {
  const [row] = await drizzle.execute<{ items: string }>(sql`
    select '[' || coalesce(string_agg(
      (select string_agg(json, ',' order by direction, position)
        from ${itemsOf(sql`link.id`)} as item), ',' order by link.place), '') || ']' as items
    from json_array_elements_text(${JSON.stringify(ids)}::json) with ordinality as link(id, place)`)
  return JSON.parse(row?.items ?? '[]')
}

/** Skips locked rows: their lock holder extends the retention too, or ends the response. */
async function extendRetention(
  drizzle: Handle,
  ids: readonly string[],
  expiresAt: Date,
): Promise<void> {
  await drizzle.execute(sql`
    update ${response} set expires_at = ${expiresAt.toISOString()}::timestamptz
    where id in (select id from ${response} where id in ${idRows(ids)}
      for no key update skip locked)`)
}

function tooLong(chainMax: number): AppError {
  return new AppError(
    'invalid_request',
    `A chain may hold at most ${chainMax} responses; start a new one with their items as input.`,
    { param: 'previous_response_id', code: 'previous_responses_too_many' },
  )
}

function tooLarge(
  what: string,
  { storedCharsMax }: StoreOptions['limits'],
  param: string,
): AppError {
  return new AppError('request_too_large', `${what} exceed the limit of ${storedCharsMax} bytes.`, {
    param,
  })
}

async function findItems(
  drizzle: Handle,
  { ownerId, itemIds }: { ownerId: string; itemIds: readonly string[] },
  { limits, now }: StoreOptions,
): Promise<ReadonlyMap<string, StoredItem>> {
  const wanted = new Map(itemIds.map((id) => [keyOf(id), id]))
  if (wanted.size === 0) return new Map()
  const rows = await drizzle.execute<{ key: string; json: string | null }>(sql`
    select key, case when sum(octet_length(json)) over () <= ${limits.storedCharsMax}::bigint
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
    if (json === null) throw tooLarge('The referenced items', limits, 'input')
    if (id !== undefined) found.set(id, JSON.parse(json))
  }
  return found
}

async function listInputItems(
  drizzle: Handle,
  { ownerId, id, page }: { ownerId: string; id: string; page: PageRequest },
  options: StoreOptions,
): Promise<Page<StoredItem> | undefined> {
  const isAscending = page.order === 'asc'
  const last = isAscending ? sql`max(place)` : sql`min(place)`
  const isAfter = isAscending ? sql`place > cursor.at` : sql`place < cursor.at`
  const inOrder = isAscending ? sql`place` : sql`place desc`
  const rows = await drizzle.execute<ListedRow>(sql`
    with ${chainOf(ownerId, id, options)},
    listed as (
      select item.item_id, item.json,
        row_number() over (order by chain.depth desc, item.direction, item.position) as place
      from chain cross join lateral ${itemsOf(sql`chain.id`)} as item
      where chain.depth > 1 or item.direction = 'input'),
    cursor as (
      select ${last} as at from listed where item_id = ${keyOf(page.after ?? '')}),
    paged as (
      select place, json from listed, cursor
      where ${page.after === null ? sql`true` : isAfter}
      order by ${inOrder} limit ${page.limit + 1}::integer),
    measured as (
      select *, sum(octet_length(json)) over (order by ${inOrder}) - octet_length(json) as before
      from paged)
    select exists (select 1 from chain) as exists_chain, cursor.at is not null as is_cursor,
      place is not null as is_item,
      case when before < ${options.limits.storedCharsMax}::bigint then json end as json
    from cursor left join measured on true order by ${inOrder}`)
  const [first] = rows
  if (first === undefined || !first.exists_chain) return undefined
  if (page.after !== null && !first.is_cursor) throw unknownCursor()
  return pageOf(
    rows.flatMap(({ is_item, json }) => (is_item ? [json] : [])),
    page,
  )
}

type ListedRow = {
  exists_chain: boolean
  is_cursor: boolean
  is_item: boolean
  json: string | null
}
