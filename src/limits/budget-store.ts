import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'

/** What was used since the last write; zero only reads. */
export type BudgetCharge = {
  readonly owner: string
  readonly period: string
  readonly tokens: number
  readonly costNanos: number
}

/** Of all processes. */
export type BudgetTotal = BudgetCharge & { readonly isWarned: boolean }

export type BudgetStore = ReturnType<typeof createBudgetStore>

/** Sums per owner and period, in one statement for all of them. */
export function createBudgetStore({
  drizzle,
  executePrepared,
}: Pick<Database, 'drizzle' | 'executePrepared'>) {
  return {
    /** Adds the charges and returns the totals; an owner without use has none. */
    charge: (charges: readonly BudgetCharge[]): Promise<readonly BudgetTotal[]> =>
      // Rows are locked in one order, so that processes never wait for each other in a circle.
      executePrepared<BudgetTotal>(sql`
        with given as (
          select * from json_to_recordset(${JSON.stringify(charges)}::text::json) as given(
            owner text, period text, tokens float8, "costNanos" float8)),
        stored as (
          insert into budget_use as known (owner, period, tokens, cost_nanos)
          select owner, period, tokens::bigint, "costNanos"::bigint from given
          where tokens > 0 or "costNanos" > 0
          order by owner, period
          on conflict (owner, period) do update set
            tokens = known.tokens + excluded.tokens,
            cost_nanos = known.cost_nanos + excluded.cost_nanos
          returning owner, period, tokens, cost_nanos, warned_at)
        select owner, period, tokens::float8 as tokens, cost_nanos::float8 as "costNanos",
          warned_at is not null as "isWarned"
        from (
          select * from stored
          union all
          select owner, period, budget_use.tokens, cost_nanos, warned_at
          from budget_use join given using (owner, period)
          where given.tokens = 0 and given."costNanos" = 0) as total`),

    /** Whether this is the first warning of the period, of all processes. */
    async warn(owner: string, period: string, at: Date): Promise<boolean> {
      const rows = await drizzle.execute(sql`
        update budget_use set warned_at = ${at.toISOString()}
        where owner = ${owner} and period = ${period} and warned_at is null
        returning owner`)
      return rows.length > 0
    },

    /** Deletes periods before this one. */
    async sweep(before: string): Promise<void> {
      await drizzle.execute(sql`delete from budget_use where period < ${before}`)
    },
  }
}
