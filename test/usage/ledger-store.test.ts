import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { rollUp, sweepUsage, vacuumUsage, writeBatch } from '#usage/ledger-store.ts'
import { ann, annsKey, bob, makeBatch, makeRecord } from './use.ts'

let database: TestDatabase

beforeEach(async () => {
  database = await openTestDatabase()
})
afterEach(() => database.close())

async function rollUpAll(): Promise<void> {
  while ((await rollUp(database)) > 0);
}

const hours = () =>
  database.drizzle.execute(`select to_char(hour at time zone 'UTC', 'YYYY-MM-DD HH24') as hour,
    user_id, model, outcome, requests::integer, estimated::integer, input_tokens::integer,
    output_tokens::integer, retries::integer, cost_nanos::integer
    from usage_hour order by 1, 2, 3, 4`)

/** The requests of the sums of hours and of days: both hold all records. */
async function requestsInSums(): Promise<unknown> {
  const [row] = await database.drizzle.execute(`select
    (select sum(requests)::integer from usage_hour) as hours,
    (select sum(requests)::integer from usage_day) as days,
    (select count(*)::integer from (select distinct day from usage_day) as days) as different_days`)
  return row
}

async function countOf(table: string): Promise<number> {
  const [row] = await database.drizzle.execute<{ rows: number }>(
    `select count(*)::integer as rows from ${table}`,
  )
  return row?.rows ?? -1
}

describe('batches', () => {
  test('hold every field of their records', async () => {
    const record = makeRecord('2026-11-23T10:15:00.250Z', {
      keyId: annsKey,
      agentId: '0198f3a2-0000-7000-8000-0000000000a2',
      requestedModel: 'alias',
      errorKind: 'upstream_error',
      responseId: 'resp_1',
      estimated: true,
      audioMs: 1_500,
      costNanos: 12,
      retries: 2,
    })
    await writeBatch(database, makeBatch(record))
    const [row] = await database.drizzle.execute('select * from usage_record')
    expect(row).toMatchObject({
      id: record.id,
      user_id: ann,
      key_id: annsKey,
      agent_id: record.agentId,
      requested_model: 'alias',
      error_kind: 'upstream_error',
      response_id: 'resp_1',
      estimated: true,
      retries: 2,
    })
    expect(new Date(String(row?.['ended_at']))).toEqual(record.endedAt)
  })

  test('that are repeated add nothing, before and after a rollup', async () => {
    const batch = makeBatch(makeRecord('2026-11-23T10:15:00Z'), makeRecord('2026-11-23T10:16:00Z'))
    await writeBatch(database, batch)
    await writeBatch(database, batch)
    expect(await countOf('usage_record')).toBe(2)
    await rollUpAll()
    await writeBatch(database, batch)
    await rollUpAll()
    expect(await countOf('usage_batch')).toBe(0)
    expect(await hours()).toMatchObject([{ requests: 2, input_tokens: 20 }])
  })
})

describe('rollups', () => {
  test('sum records by hour, user, model and outcome', async () => {
    await writeBatch(
      database,
      makeBatch(
        makeRecord('2026-11-23T10:00:00Z'),
        makeRecord('2026-11-23T10:59:59.999Z', { estimated: true, retries: 2 }),
        makeRecord('2026-11-23T11:00:00Z'),
        makeRecord('2026-11-23T10:30:00Z', { userId: bob }),
        makeRecord('2026-11-23T10:30:00Z', { model: 'n' }),
        makeRecord('2026-11-23T10:30:00Z', { outcome: 'failed', inputTokens: 0 }),
      ),
    )
    await rollUpAll()
    const rows = [...(await hours())]
    expect(rows).toHaveLength(5)
    expect(rows.find((row) => row['requests'] === 2)).toMatchObject({
      hour: '2026-11-23 10',
      user_id: ann,
      input_tokens: 20,
      output_tokens: 10,
      estimated: 1,
      retries: 2,
      cost_nanos: null,
    })
  })

  test('add late records to their hour', async () => {
    await writeBatch(database, makeBatch(makeRecord('2026-11-23T12:00:00Z', { costNanos: 5 })))
    await rollUpAll()
    await writeBatch(database, makeBatch(makeRecord('2026-11-23T12:30:00Z')))
    await writeBatch(database, makeBatch(makeRecord('2026-11-23T09:30:00Z')))
    await rollUpAll()
    expect(await hours()).toMatchObject([
      { hour: '2026-11-23 09', requests: 1, cost_nanos: null },
      { hour: '2026-11-23 12', requests: 2, cost_nanos: 5 },
    ])
  })

  test('by several processes at the same time count each record once', async () => {
    for (let batch = 0; batch < 40; batch++) {
      await writeBatch(
        database,
        makeBatch(
          ...Array.from({ length: 25 }, () =>
            makeRecord(`2026-11-23T1${batch % 3}:30:00Z`, { userId: batch % 2 === 0 ? ann : bob }),
          ),
        ),
      )
      if (batch % 10 === 9)
        await Promise.all([rollUp(database), rollUp(database), rollUp(database)])
    }
    await rollUpAll()
    const rows = [...(await hours())]
    expect(rows.reduce((sum, row) => sum + Number(row['requests']), 0)).toBe(1_000)
    expect(rows).toHaveLength(6)
    expect(await requestsInSums()).toEqual({ hours: 1_000, days: 1_000, different_days: 1 })
    expect(await countOf('usage_batch')).toBe(0)
  })

  test('take a bounded number of records at a time', async () => {
    for (let batch = 0; batch < 50; batch++) {
      await writeBatch(
        database,
        makeBatch(...Array.from({ length: 500 }, () => makeRecord('2026-11-23T10:00:00Z'))),
      )
    }
    expect(await rollUp(database)).toBe(40)
    expect(await rollUp(database)).toBe(10)
    expect(await rollUp(database)).toBe(0)
    expect(await hours()).toMatchObject([{ requests: 25_000 }])
  })

  test('are all or nothing', async () => {
    await writeBatch(database, makeBatch(makeRecord('2026-11-23T10:00:00Z')))
    await database.drizzle.execute(
      'alter table usage_hour add constraint refused check (requests < 0) not valid',
    )
    expect(rollUp(database)).rejects.toThrow()
    expect(await countOf('usage_batch')).toBe(1)
    await database.drizzle.execute('alter table usage_hour drop constraint refused')
    await rollUpAll()
    expect(await hours()).toMatchObject([{ requests: 1 }])
    expect(await requestsInSums()).toEqual({ hours: 1, days: 1, different_days: 1 })
  })
})

describe('retention', () => {
  const now = new Date('2026-11-23T12:00:00Z')

  test('deletes old records and old sums', async () => {
    const old = makeRecord('2026-10-01T00:00:00Z')
    const kept = makeRecord('2026-11-20T00:00:00Z')
    await writeBatch(database, makeBatch(makeRecord('2026-01-01T00:00:00Z'), old, kept))
    await rollUpAll()
    const rows = await sweepUsage(database, { keepDays: 30, keepSumsDays: 100, now })
    // Two records, and the sums of one hour and one day.
    expect(rows).toBe(4)
    expect(await database.drizzle.execute('select id from usage_record')).toMatchObject([
      { id: kept.id },
    ])
    expect(await hours()).toMatchObject([{ hour: '2026-10-01 00' }, { hour: '2026-11-20 00' }])
    await vacuumUsage(database)
  })

  test('keeps records that are not in the sums yet', async () => {
    await writeBatch(database, makeBatch(makeRecord('2026-10-01T00:00:00Z')))
    const days = { keepDays: 30, keepSumsDays: 100, now }
    expect(await sweepUsage(database, days)).toBe(0)
    await rollUpAll()
    expect(await sweepUsage(database, days)).toBe(1)
    expect(await hours()).toHaveLength(1)
  })
})
