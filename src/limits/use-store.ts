import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { apiKey, appUser, userGroup } from '#db/schema/auth.ts'
import type { LimitValues } from './config.ts'
import { periodsMs } from './meters.ts'

/** Keys and owners that begin with one of these: `user:`, `model:writer:`. Null: all. */
export type Prefixes = readonly string[] | null

/** The use of a limit in all processes. */
export type StoredUse = { readonly key: string; readonly used: number; readonly share: number }

/** What an owner used of a day or month. */
export type BudgetUse = {
  readonly owner: string
  readonly period: string
  readonly tokens: number
  readonly costNanos: number
}

/** Whom limits and budgets belong to. */
export type Owners = {
  readonly users: ReadonlyMap<string, { name: string; groups: readonly string[] }>
  readonly keys: ReadonlyMap<string, { name: string; limits: LimitValues }>
}

export type UseStore = ReturnType<typeof createUseStore>

const minuteMs = periodsMs.requests_per_minute
const hourMs = periodsMs.speech_minutes_per_hour

/** Reads how much of limits and budgets is used. */
export function createUseStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const query = createQueryRunner()
  const within = (prefixes: Prefixes, column: SQL) =>
    prefixes === null
      ? sql`true`
      : sql`exists (select 1 from json_array_elements_text(${JSON.stringify(prefixes)}::json) as prefix
          where starts_with(${column} || ':', prefix.value))`
  return {
    /** Limits per minute or hour, the fullest first. */
    rates: (prefixes: Prefixes, countMax: number): Promise<readonly StoredUse[]> =>
      // Use empties at a constant rate, so its share of the limit is the time left of the period.
      query(() =>
        drizzle.execute<StoredUse>(sql`
          select key, used, extract(epoch from idle_at - clock_timestamp())::float8 * 1000
            / case when key like '%:speech_minutes_per_hour' then ${hourMs}::float8
              else ${minuteMs}::float8 end as share
          from limit_bucket where idle_at > clock_timestamp() and ${within(prefixes, sql`key`)}
          order by share desc limit ${countMax}::integer`),
      ),

    /** Slots that processes hold, most first. */
    slots: (
      prefixes: Prefixes,
      countMax: number,
    ): Promise<readonly Pick<StoredUse, 'key' | 'used'>[]> =>
      query(() =>
        drizzle.execute<Pick<StoredUse, 'key' | 'used'>>(sql`
          select key, sum(slots)::float8 as used
          from limit_slot join limit_process on limit_process.id = process_id
          where expires_at > clock_timestamp() and ${within(prefixes, sql`key`)}
          group by key order by used desc limit ${countMax}::integer`),
      ),

    /** The largest use of each period in tokens and in cost, and that of these owners. */
    budgets: (
      periods: readonly string[],
      { prefixes, owners, countMax }: BudgetFilter,
    ): Promise<readonly BudgetUse[]> =>
      query(() =>
        drizzle.execute<BudgetUse>(sql`
          select owner, period, tokens, "costNanos" from (
            select owner, period, tokens::float8 as tokens, cost_nanos::float8 as "costNanos",
              row_number() over (partition by period order by tokens desc) as by_tokens,
              row_number() over (partition by period order by cost_nanos desc) as by_cost
            from budget_use
            where period in (select json_array_elements_text(${JSON.stringify(periods)}::json))
              and ${within(prefixes, sql`owner`)}) as ranked
          where by_tokens <= ${countMax}::integer or by_cost <= ${countMax}::integer
            or owner in (select json_array_elements_text(${JSON.stringify(owners)}::json))`),
      ),

    async owners(ids: { users: readonly string[]; keys: readonly string[] }): Promise<Owners> {
      const given = (list: readonly string[]) =>
        sql`(select value::uuid from json_array_elements_text(${JSON.stringify(list)}::json))`
      const [users, keys] = await Promise.all([
        ids.users.length === 0
          ? []
          : query(() =>
              drizzle.execute<{ id: string; name: string; groups: string | null }>(sql`
                select id, coalesce(name, subject) as name,
                  (select json_agg(distinct group_name)::text from ${userGroup} where user_id = id)
                    as groups
                from ${appUser} where id in ${given(ids.users)}`),
            ),
        ids.keys.length === 0
          ? []
          : query(() =>
              drizzle.execute<{ id: string; name: string; limits: string | null }>(sql`
                select id, name, limits from ${apiKey} where id in ${given(ids.keys)}`),
            ),
      ])
      return {
        users: new Map(
          users.map(({ id, name, groups }) => [id, { name, groups: JSON.parse(groups ?? '[]') }]),
        ),
        keys: new Map(
          keys.map(({ id, name, limits }) => [id, { name, limits: JSON.parse(limits ?? '{}') }]),
        ),
      }
    },
  }
}

type BudgetFilter = {
  readonly prefixes: Prefixes
  /** Owners with budgets of their own: they may be full with little use. */
  readonly owners: readonly string[]
  readonly countMax: number
}
