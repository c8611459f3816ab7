import { desc, type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { apiKey, appUser } from '#db/schema/auth.ts'
import { usageBatch, usageDay, usageHour, usageRecord } from '#db/schema/usage.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import {
  type Dimension,
  isTime,
  type UsageFilter,
  type UsageGroup,
  type UsageGrouping,
  type UsageSums,
  type UsageTable,
  wholeDays,
} from './grouping.ts'
import {
  comma,
  dayOfHour,
  dimensions,
  keyColumns,
  smallestIdAt,
  sumColumns,
  sumNames,
  sumOfEach,
} from './ledger-store.ts'
import type { UsageRecord } from './record.ts'

export type UsageStore = ReturnType<typeof createUsageStore>

/** Grouping the sums of a year takes longer than other queries. */
const queryMsMax = 10_000

/** The sums of one record whose column is not the sum itself. */
const ofOneRecord: Readonly<Record<string, SQL>> = {
  requests: sql`1::bigint`,
  estimated: sql`estimated::integer::bigint`,
  retries: sql`retries::bigint`,
}
const freshSums = sumNames.map((name) => ofOneRecord[name] ?? sql.raw(name))

const columns = sql.raw(`hour, ${keyColumns}, ${sumColumns}`)

/** The records that the hourly sums do not contain yet, with their columns. */
const fresh = sql`(
  select ${sql.join([...Object.values(dimensions), ...freshSums], comma)}
  from ${usageRecord}
  where id >= (select first_id from ${usageBatch} order by first_id limit 1)
    and id <= (select last_id from ${usageBatch} order by last_id desc limit 1)
    and batch_id in (select id from ${usageBatch})
) as fresh (${columns})`

/** The daily sums, with the columns of hourly ones. */
const days = sql`(
  select day, ${sql.raw(`${keyColumns}, ${sumColumns}`)} from ${usageDay}
) as days (${columns})`

const within = (from: Date, to: Date) =>
  sql`hour >= ${from.toISOString()}::timestamptz and hour < ${to.toISOString()}::timestamptz`

const expressions: Readonly<Record<Dimension, SQL>> = {
  hour: sql`hour`,
  day: dayOfHour,
  month: sql`date_trunc('month', hour, 'UTC')`,
  model: sql`model`,
  user: sql`user_id`,
  key: sql`key_id`,
  agent: sql`agent_id`,
  upstream: sql`upstream`,
  kind: sql`kind`,
  outcome: sql`outcome`,
}
const types: Readonly<Record<Dimension, string>> = {
  hour: 'timestamptz',
  day: 'timestamptz',
  month: 'timestamptz',
  model: 'text',
  user: 'uuid',
  key: 'uuid',
  agent: 'uuid',
  upstream: 'text',
  kind: 'text',
  outcome: 'text',
}

/** Reads the ledger. */
export function createUsageStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const query = createQueryRunner(queryMsMax)
  return {
    /** One page of groups, newest first, and the sums over all pages. */
    async group(
      { by: dimensionsOf, filter: { from, to, ...filter } }: UsageGrouping,
      { limit, after }: GroupPage,
    ): Promise<UsageTable> {
      const by = dimensionsOf.map((dimension, at) => ({ dimension, column: sql.raw(`g${at}`) }))
      const keys = by.map(({ dimension, column }) => sql`${expressions[dimension]} as ${column}`)
      const added = [sql.raw(sumOfEach)]
      const groupBy =
        by.length === 0
          ? sql`having count(*) > 0`
          : sql.raw(`group by ${by.map((_, at) => at + 1)}`)
      const order = by.map(({ dimension, column }) =>
        isTime(dimension) ? sql`${column} desc` : sql`${column}`,
      )
      const orderBy = order.length === 0 ? sql`` : sql`order by ${sql.join(order, comma)}`
      const names = by.map(({ column }) => column)
      const values = sql.join([...names, sql.raw(sumColumns)], comma)
      const nulls = by.map(({ dimension }) => sql.raw(`null::${types[dimension]}`))
      // Each part is summed by itself: several processes of the server may then read one.
      const partOf = (table: SQL, range: SQL) =>
        sql`select ${sql.join([...keys, ...added], comma)} from ${table}
          where ${conditionOf([range], filter)} ${groupBy}`
      const whole = dimensionsOf.includes('hour') ? null : wholeDays({ from, to })
      const parts = [
        partOf(fresh, within(from, to)),
        ...(whole === null
          ? [partOf(sql`${usageHour}`, within(from, to))]
          : [
              partOf(days, within(whole.from, whole.to)),
              partOf(sql`${usageHour}`, within(from, whole.from)),
              partOf(sql`${usageHour}`, within(whole.to, to)),
            ]),
      ]
      const rows = await query(() =>
        drizzle.execute<Row>(sql`
          with grouped as materialized (
            select ${sql.join([...names, ...added], comma)} from (
              ${sql.join(parts, sql` union all `)}
            ) as parts ${groupBy}
          ),
          page as (
            select ${values} from grouped where ${afterCondition(by, after)} ${orderBy}
            limit ${limit + 1}::integer
          )
          select false as is_total, ${values} from page
          union all
          select true, ${sql.join([...nulls, ...added], comma)} from grouped`),
      )
      const groups = rows.filter((row) => row['is_total'] !== true)
      const total = rows.find((row) => row['is_total'] === true) ?? {}
      const page = pageOf(
        groups.map((row) => groupOf(row, dimensionsOf)),
        limit,
      )
      return { page, totals: sumsOf(total) }
    },

    /** Names of users and keys, by id. */
    async namesOf(ids: {
      users: readonly string[]
      keys: readonly string[]
    }): Promise<ReadonlyMap<string, string>> {
      if (ids.users.length + ids.keys.length === 0) return new Map()
      const given = (list: readonly string[]) =>
        sql`(select value::uuid from json_array_elements_text(${JSON.stringify(list)}::json))`
      const rows = await query(() =>
        drizzle.execute<{ id: string; name: string | null }>(sql`
          select id, coalesce(name, subject) as name from ${appUser} where id in ${given(ids.users)}
          union all
          select id, name from ${apiKey} where id in ${given(ids.keys)}`),
      )
      return new Map(rows.flatMap(({ id, name }) => (name === null ? [] : [[id, name] as const])))
    },

    /** Single records, newest first, after the record with the id `after`. */
    async records(
      { from, to, ...filter }: UsageFilter,
      { limit, after }: PageRequest,
    ): Promise<Page<UsageRecord>> {
      // The ids start with their time.
      const range = [
        sql`id >= ${smallestIdAt(from)}::uuid`,
        sql`id < ${smallestIdAt(to)}::uuid`,
        ...(after === undefined ? [] : [sql`id < ${after}::uuid`]),
      ]
      const rows = await query(() =>
        drizzle
          .select()
          .from(usageRecord)
          .where(conditionOf(range, filter))
          .orderBy(desc(usageRecord.id))
          .limit(limit + 1),
      )
      // The columns of names hold what was written from the same type.
      return pageOf(rows as readonly UsageRecord[], limit)
    },
  }
}

/** `after`: the values of the last group of the previous page. */
type GroupPage = { readonly limit: number; readonly after?: readonly string[] | undefined }
type Row = Record<string, unknown>
type By = readonly { readonly dimension: Dimension; readonly column: SQL }[]

/** The columns have the same names in records and sums. */
function conditionOf(range: readonly SQL[], filter: Omit<UsageFilter, 'from' | 'to'>): SQL {
  const is = (column: string, value: string | undefined, type: string) =>
    value === undefined ? [] : [sql`${sql.raw(column)} = ${value}::${sql.raw(type)}`]
  return sql.join(
    [
      ...range,
      ...is('user_id', filter.user, 'uuid'),
      ...is('key_id', filter.key, 'uuid'),
      ...is('agent_id', filter.agent, 'uuid'),
      ...is('model', filter.model, 'text'),
      ...is('upstream', filter.upstream, 'text'),
      ...is('kind', filter.kind, 'text'),
      ...is('outcome', filter.outcome, 'text'),
      ...is('request_id', filter.requestId, 'text'),
    ],
    sql` and `,
  )
}

/** Time descends, everything else ascends. Without a time that is one comparison of rows. */
function afterCondition(by: By, after: readonly string[] | undefined): SQL {
  if (after === undefined) return sql`true`
  let condition = sql`false`
  for (const [at, { dimension, column }] of [...by.entries()].toReversed()) {
    const value = sql`${after[at] ?? ''}::${sql.raw(types[dimension])}`
    const isFurther = isTime(dimension) ? sql`${column} < ${value}` : sql`${column} > ${value}`
    condition = sql`(${isFurther} or (${column} = ${value} and ${condition}))`
  }
  return condition
}

function groupOf(row: Row, by: readonly Dimension[]): UsageGroup {
  const values = by.map((dimension, at) => {
    const value = row[`g${at}`]
    return isTime(dimension) ? new Date(String(value)).toISOString() : String(value)
  })
  return { values, sums: sumsOf(row) }
}

function sumsOf(row: Row): UsageSums {
  const sum = (name: string) => Number(row[name] ?? 0)
  return {
    requests: sum('requests'),
    estimated: sum('estimated'),
    retries: sum('retries'),
    inputTokens: sum('input_tokens'),
    cachedTokens: sum('cached_tokens'),
    cacheWriteTokens: sum('cache_write_tokens'),
    outputTokens: sum('output_tokens'),
    reasoningTokens: sum('reasoning_tokens'),
    audioMs: sum('audio_ms'),
    costNanos: row['cost_nanos'] == null ? null : sum('cost_nanos'),
    durationMs: sum('duration_ms'),
  }
}
