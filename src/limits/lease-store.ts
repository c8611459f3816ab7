import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { databaseUnavailable } from '#lib/errors.ts'

/** What a process reports and wants of a limit per period. */
export type RateAsk = {
  readonly key: string
  readonly limit: number
  readonly periodMs: number
  /** Units that were spent without a lease. */
  readonly owed: number
  /** Unspent units of the lease. */
  readonly returned: number
  /** Units to lease; fewer than `least` are of no use. */
  readonly wanted: number
  readonly least: number
}

/** The slots that a process has in use, and how many it wants to hold. */
export type SlotAsk = {
  readonly key: string
  readonly limit: number
  readonly inUse: number
  readonly wanted: number
}

export type Answer = {
  readonly rates: readonly { key: string; granted: number; used: number }[]
  readonly slots: readonly { key: string; held: number }[]
  /** That share limits now, including this one. */
  readonly processes: number
}

export type LeaseStore = ReturnType<typeof createLeaseStore>

/** Rows of limits without use, deleted per exchange. */
const idleRowsPerSweep = 200

/**
 * Leases of shares, under one lock: the time is that of the database, so clocks of machines do not
 * matter.
 */
export function createLeaseStore(
  { drizzle }: Pick<Database, 'drizzle'>,
  { processId, leaseMs }: { processId: string; leaseMs: number },
) {
  const query = createQueryRunner()
  /** The transaction of an exchange that its process has given up on waits for the lock. */
  let isPending = false
  return {
    /**
     * Renews the leases of this process, and changes these. `holding`: frees all slots but these, which
     * an earlier exchange may have taken after this process had given up on it; null: frees none.
     */
    exchange: (
      rates: readonly RateAsk[],
      slots: readonly SlotAsk[],
      holding: readonly string[] | null,
    ): Promise<Answer> =>
      query(async () => {
        // Each further one would hold a connection, until none is left for requests.
        if (isPending) throw databaseUnavailable(new Error('an earlier exchange is pending'))
        isPending = true
        const exchanged = drizzle.transaction(async (transaction): Promise<Answer> => {
          const run = async <Row>(statement: SQL) =>
            (await transaction.execute(statement)) as unknown as Row[]
          await run(sql`select pg_advisory_xact_lock(hashtextextended('limits', 0))`)
          // The cascade frees the slots of processes that have expired.
          const expired = sql`delete from limit_process where expires_at < clock_timestamp()`
          await run(expired)
          const [row] = await run<{ processes: number }>(sql`
            with renewed as (
              insert into limit_process (id, expires_at)
              values (${processId}, clock_timestamp() + ${leaseMs} * interval '1 millisecond')
              on conflict (id) do update set expires_at = excluded.expires_at)
            select count(*)::int + 1 as processes from limit_process where id <> ${processId}`)
          if (holding !== null) await run(freeOthers(processId, holding))
          return {
            processes: row?.processes ?? 1,
            rates: rates.length === 0 ? [] : await run(leaseUnits(rates)),
            slots: slots.length === 0 ? [] : await run(leaseSlots(processId, slots)),
          }
        })
        return exchanged.finally(() => {
          isPending = false
        })
      }),

    /** Frees everything that this process holds. */
    leave: () =>
      query(async () => {
        await drizzle.execute(sql`delete from limit_process where id = ${processId}`)
      }),

    async sweep(): Promise<void> {
      await drizzle.execute(sql`
        delete from limit_bucket where key in (
          select key from limit_bucket where idle_at < clock_timestamp() - interval '1 minute'
          limit ${idleRowsPerSweep} for update skip locked)`)
    },
  }
}

/** Use decays by the limit per period, then the report is added, then the lease. */
function leaseUnits(asks: readonly RateAsk[]): SQL {
  return sql`
    with ask as (
      select * from json_to_recordset(${JSON.stringify(asks)}::json) as ask(
        key text, "limit" float8, "periodMs" float8, owed float8, returned float8,
        wanted float8, least float8)),
    before as (
      select ask.*, ask."limit" / ask."periodMs" as per_ms, clock_timestamp() as at,
        coalesce(bucket.used, 0) as used,
        coalesce(greatest(0, extract(epoch from clock_timestamp() - bucket.updated_at)), 0) * 1000
          as elapsed_ms
      from ask left join limit_bucket as bucket using (key)),
    reported as (
      select *, greatest(0, greatest(0, used - elapsed_ms * per_ms) + owed - returned) as reported
      from before),
    leased as (
      select *, case when "limit" - reported >= least
        then greatest(0, floor(least(wanted, "limit" - reported))) else 0 end as granted
      from reported),
    stored as (
      insert into limit_bucket (key, used, updated_at, idle_at)
      select key, reported + granted, at,
        at + (reported + granted) / greatest(per_ms, 0.000001) * interval '1 millisecond'
      from leased
      on conflict (key) do update set
        used = excluded.used, updated_at = excluded.updated_at, idle_at = excluded.idle_at)
    select key, granted, reported + granted as used from leased`
}

function freeOthers(processId: string, holding: readonly string[]): SQL {
  return sql`
    delete from limit_slot where process_id = ${processId} and key not in (
      select value from json_array_elements_text(${JSON.stringify(holding)}::json))`
}

/** Slots in use stay held even above a limit that was lowered. */
function leaseSlots(processId: string, asks: readonly SlotAsk[]): SQL {
  return sql`
    with ask as (
      select * from json_to_recordset(${JSON.stringify(asks)}::json) as ask(
        key text, "limit" int, "inUse" int, wanted int)),
    leased as (
      select ask.key, greatest(ask."inUse", least(ask.wanted, ask."limit" - coalesce((
        select sum(slots) from limit_slot
        where limit_slot.key = ask.key and process_id <> ${processId}), 0))::int) as held
      from ask),
    stored as (
      insert into limit_slot (key, process_id, slots)
      select key, ${processId}, held from leased where held > 0
      on conflict (key, process_id) do update set slots = excluded.slots),
    freed as (
      delete from limit_slot where process_id = ${processId}
        and key in (select key from leased where held <= 0))
    select key, held from leased`
}
