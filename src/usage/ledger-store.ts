import { getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { usageBatch, usageDay, usageHour, usageRecord } from '#db/schema/usage.ts'
import { dayMs, noId } from './grouping.ts'
import type { UsageBatch } from './ledger.ts'
import type { UsageRecord } from './record.ts'

type LedgerDatabase = Pick<Database, 'drizzle' | 'executePrepared' | 'kind'>

/** What is absent from the text of a row, by the type of its column. */
const zeros: Readonly<Record<string, string>> = {
  bigint: '0',
  integer: '0',
  boolean: 'false',
  text: "''",
}

/** The columns of a record. Short keys halve the text of a batch. */
const fields = Object.entries(getTableColumns(usageRecord))
  .filter(([key]) => key !== 'batchId')
  .map(([key, column], at) => {
    const short = `c${at.toString(36)}`
    const type = column.getSQLType()
    const isTime = column.dataType === 'date'
    const zero = column.notNull ? zeros[type] : undefined
    return {
      key: key as keyof UsageRecord,
      short,
      isZeroAbsent: zero !== undefined,
      name: column.name,
      declaration: `${short} ${isTime ? 'float8' : type}`,
      value: isTime
        ? `to_timestamp(${short} / 1000)`
        : zero === undefined
          ? short
          : `coalesce(${short}, ${zero})`,
    }
  })
const fieldNames = sql.raw(fields.map(({ name }) => name).join(', '))
const fieldTypes = sql.raw(fields.map(({ declaration }) => declaration).join(', '))
const fieldValues = sql.raw(fields.map(({ value }) => value).join(', '))

/** Without nulls and most zeros. Times in ms: a date makes `JSON.stringify` several times slower. */
function compact(record: UsageRecord): object {
  const row: Record<string, unknown> = {}
  for (const { key, short, isZeroAbsent } of fields) {
    const value = record[key]
    if (value === null || (isZeroAbsent && !value)) continue
    row[short] = value instanceof Date ? value.getTime() : value
  }
  return row
}

/**
 * Writes a batch in one statement: its records, and one row that says that the sums do not contain them.
 * A repeated batch adds nothing, also when the sums contain it by now.
 */
export async function writeBatch(
  { executePrepared }: Pick<LedgerDatabase, 'executePrepared'>,
  { id, records }: UsageBatch,
): Promise<void> {
  if (records.length === 0) return
  const [firstId, lastId] = rangeOf(records)
  const json = JSON.stringify(records.map(compact))
  await executePrepared(sql`
    with added as (
      insert into ${usageRecord} (batch_id, ${fieldNames})
      select ${id}::uuid, ${fieldValues} from json_to_recordset(${json}::json) as given(${fieldTypes})
      on conflict do nothing returning 1
    )
    insert into ${usageBatch} (id, first_id, last_id, records)
    select ${id}::uuid, ${firstId}::uuid, ${lastId}::uuid, count(*)::integer
    from added having count(*) > 0
    on conflict do nothing`)
}

/** The smallest and the largest id. */
function rangeOf(records: readonly UsageRecord[]): [first: string, last: string] {
  let [first, last] = [records[0]?.id ?? noId, noId]
  for (const { id } of records) {
    if (id < first) first = id
    if (id > last) last = id
  }
  return [first, last]
}

/** Any number; the same in every version. */
const rollupLock = 7_263_548_121
const batchesPerRollup = 500
const recordsPerRollup = 20_000

const none = sql.raw(`'${noId}'::uuid`)

/** The dimensions of an hourly sum, computed from a record. */
export const dimensions = {
  hour: sql`date_trunc('hour', ended_at, 'UTC')`,
  userId: sql`coalesce(user_id, ${none})`,
  keyId: sql`coalesce(key_id, ${none})`,
  agentId: sql`coalesce(agent_id, ${none})`,
  model: sql`model`,
  upstream: sql`coalesce(upstream, '')`,
  kind: sql`kind`,
  outcome: sql`outcome`,
}

/** The sums, by column, computed from records. */
const sums: Readonly<Record<string, SQL>> = {
  requests: sql`count(*)`,
  estimated: sql`count(*) filter (where estimated)`,
  retries: sql`sum(retries)`,
  input_tokens: sql`sum(input_tokens)`,
  cached_tokens: sql`sum(cached_tokens)`,
  cache_write_tokens: sql`sum(cache_write_tokens)`,
  output_tokens: sql`sum(output_tokens)`,
  reasoning_tokens: sql`sum(reasoning_tokens)`,
  audio_ms: sql`sum(audio_ms)`,
  cost_nanos: sql`sum(cost_nanos)`,
  duration_ms: sql`sum(duration_ms)`,
}

export const comma = sql.raw(', ')
/** The columns of the dimensions without their time. */
export const keyColumns = 'user_id, key_id, agent_id, model, upstream, kind, outcome'
export const sumNames = Object.keys(sums)
export const sumColumns = sumNames.join(', ')

/**
 * Adds the records of some batches to the sums of hours and days and deletes these batches, in one
 * transaction: each record counts once, however the process ends. Returns how many batches; 0 also while
 * another process does it. Records that arrive late are in a batch of their own, so their hour is
 * corrected.
 */
export async function rollUp({ drizzle }: Pick<LedgerDatabase, 'drizzle'>): Promise<number> {
  return drizzle.transaction(async (transaction) => {
    const [lock] = await transaction.execute<{ taken: boolean }>(
      sql`select pg_try_advisory_xact_lock(${rollupLock}::bigint) as taken`,
    )
    if (lock?.taken !== true) return 0
    const rolled = await transaction.execute<{ batches: number }>(sql`
      with due as materialized (
        select id, first_id, last_id from (
          select *, sum(records) over (order by id) - records as records_before
          from (select * from ${usageBatch} order by id limit ${batchesPerRollup}::integer) as oldest
        ) as counted
        where records_before < ${recordsPerRollup}::integer
      ),
      deleted as (
        delete from ${usageBatch} where id in (select id from due) returning 1
      ),
      hours (hour, ${sql.raw(`${keyColumns}, ${sumColumns}`)}) as materialized (
        select ${sql.join([...Object.values(dimensions), ...Object.values(sums)], comma)}
        from ${usageRecord}
        where id >= (select first_id from due order by first_id limit 1)
          and id <= (select last_id from due order by last_id desc limit 1)
          and batch_id in (select id from due)
        group by 1, 2, 3, 4, 5, 6, 7, 8
      ),
      added_hours as (
        insert into ${usageHour} (${sql.raw(`hour, ${keyColumns}, ${sumColumns}`)})
        select * from hours ${onConflict('hour')}
      ),
      added_days as (
        insert into ${usageDay} (${sql.raw(`day, ${keyColumns}, ${sumColumns}`)})
        select ${dayOfHour}, ${sql.raw(keyColumns)}, ${sql.raw(sumOfEach)}
        from hours group by 1, 2, 3, 4, 5, 6, 7, 8 ${onConflict('day')}
      )
      select count(*)::integer as batches from deleted`)
    return rolled[0]?.batches ?? 0
  })
}

/** The beginning of the day of an hour, in UTC. */
export const dayOfHour = sql`date_bin('1 day', hour, 'epoch'::timestamptz)`
/** Adds up sums. */
export const sumOfEach = sumNames.map((name) => `sum(${name}) as ${name}`).join(', ')

/** An unknown cost stays unknown until one is known. */
function onConflict(time: 'hour' | 'day'): SQL {
  const table = `usage_${time}`
  const additions = sumNames.map((name) => {
    const [old, added] = [`${table}.${name}`, `excluded.${name}`]
    const sum = `${old} + ${added}`
    return `${name} = ${name === 'cost_nanos' ? `coalesce(${sum}, ${old}, ${added})` : sum}`
  })
  return sql.raw(`on conflict (${time}, ${keyColumns}) do update set ${additions.join(', ')}`)
}

const rowsPerStatement = 2_000
/** The rest is left to the next sweep. */
const statementsMax = 500

/** Deletes expired records and sums. Replicas may sweep at the same time. Returns how many rows. */
export async function sweepUsage(
  { drizzle }: Pick<LedgerDatabase, 'drizzle'>,
  { keepDays, keepSumsDays, now }: { keepDays: number; keepSumsDays: number; now: Date },
): Promise<number> {
  const daysAgo = (days: number) => now.getTime() - days * dayMs
  // Ids start with their time, so comparing ids compares ages.
  const smallestKept = smallestIdAt(new Date(Math.max(0, daysAgo(keepDays))))
  const recordsDeleted = await repeatDeletion(
    drizzle,
    sql`
    delete from ${usageRecord} where id in (
      select id from ${usageRecord} where id < ${smallestKept}::uuid
        and not exists (select 1 from ${usageBatch} as batch where batch.id = batch_id)
      order by id limit ${rowsPerStatement}::integer for update skip locked)
    returning 1`,
  )
  const oldestHour = new Date(Math.max(0, daysAgo(keepSumsDays))).toISOString()
  const deleteSums = (table: SQL, time: SQL) =>
    repeatDeletion(
      drizzle,
      sql`
    delete from ${table} where ctid = any(array(
      select ctid from ${table} where ${time} < ${oldestHour}::timestamptz
      limit ${rowsPerStatement}::integer for update skip locked))
    returning 1`,
    )
  const hoursDeleted = await deleteSums(sql`${usageHour}`, sql`hour`)
  const daysDeleted = await deleteSums(sql`${usageDay}`, sql`day`)
  return recordsDeleted + hoursDeleted + daysDeleted
}

/** Smaller than the id of every record that ended at this time or later (RFC 9562, 5.7). */
export function smallestIdAt(at: Date): string {
  const hex = Math.max(0, at.getTime()).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

async function repeatDeletion(
  drizzle: Pick<Database['drizzle'], 'execute'>,
  statement: SQL,
): Promise<number> {
  let deleted = 0
  for (let statements = 0; statements < statementsMax; statements++) {
    const rows = await drizzle.execute(statement)
    deleted += rows.length
    if (rows.length < rowsPerStatement) break
  }
  return deleted
}

/** The embedded engine has no autovacuum. */
export async function vacuumUsage({ drizzle }: Pick<LedgerDatabase, 'drizzle'>): Promise<void> {
  await drizzle.execute(
    sql`vacuum (analyze) ${usageRecord}, ${usageBatch}, ${usageHour}, ${usageDay}`,
  )
}
