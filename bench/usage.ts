import { parseArgs } from 'node:util'
import { openDatabase } from '#db/client.ts'
import { createLog } from '#telemetry/log.ts'
import { dayMs, type UsageGrouping } from '#usage/grouping.ts'
import { rollUp, writeBatch } from '#usage/ledger-store.ts'
import { createUsageStore } from '#usage/usage-store.ts'
import { stopChildren, temporaryFolder } from './support/children.ts'
import { createDatabase } from './support/database.ts'
import { numberIn } from './support/options.ts'
import { writeResult } from './support/report.ts'
import { formatSpread, formatTable, median } from './support/table.ts'
import { fillSums, makeRecords, userOf } from './support/usage-fill.ts'

export const summary =
  'Usage of millions of records grouped from hourly sums; writing and rolling up records.'
export const usage =
  '[--quick] [--records 10000000] [--users 200] [--days 30] [--database postgres://…] [--json FILE]'

/** A slower grouping fails the benchmark. */
const groupMsMax = 300
const roundsMax = 9
const tailRecords = 10_000
const recordsPerBatch = 1_000
const to = new Date('2026-11-01T00:00:00Z')

type Options = {
  readonly records: number
  readonly users: number
  readonly days: number
  readonly rounds: number
  readonly databaseServer: string | undefined
  readonly jsonFile: string | undefined
}

type Row = { readonly what: string; readonly groups: number; readonly ms: readonly number[] }

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  try {
    const { databaseServer } = options
    const databaseUrl =
      databaseServer === undefined ? undefined : await createDatabase(databaseServer)
    const result = await measure(options, databaseUrl)
    console.log(`\n${result.text}\n`)
    writeResult('usage', options, result)
    return result.rows.every(({ ms }) => median(ms) <= groupMsMax) ? 0 : 1
  } finally {
    await stopChildren()
  }
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      records: { type: 'string', default: '10000000' },
      users: { type: 'string', default: '200' },
      days: { type: 'string', default: '30' },
      database: { type: 'string' },
      json: { type: 'string' },
    },
  })
  return {
    records: numberIn(values.records, { name: 'records', from: 1_000, to: 1e9 }),
    users: numberIn(values.users, { name: 'users', from: 1, to: 10_000 }),
    days: numberIn(values.days, { name: 'days', from: 1, to: 730 }),
    rounds: values.quick ? 3 : roundsMax,
    databaseServer: values.database,
    jsonFile: values.json,
  }
}

async function measure(options: Options, databaseUrl: string | undefined) {
  const { records, users, days, rounds } = options
  const log = createLog({
    level: 'error',
    format: 'text',
    now: () => new Date(),
    write: (line) => console.error(line),
  })
  const place = { databaseUrl, dataFolder: temporaryFolder(), connectionsMax: 2, log }
  const database = await openDatabase(place)
  try {
    const from = new Date(to.getTime() - days * dayMs)
    const sums = await fillSums(database, { records, users, from, hours: days * 24 })
    const writing = await measureWriting(database)
    // These stay as single records, as the last seconds of a busy gateway do.
    await writeRecords(database)
    const store = createUsageStore(database)
    const filter = { from, to }
    const groupings: readonly (readonly [string, UsageGrouping])[] = [
      ['day', { by: ['day'], filter }],
      ['model', { by: ['model'], filter }],
      ['user', { by: ['user'], filter }],
      ['month, key', { by: ['month', 'key'], filter }],
      ['day, model, upstream', { by: ['day', 'model', 'upstream'], filter }],
      ['hour, model', { by: ['hour', 'model'], filter }],
      ['day of one user', { by: ['day'], filter: { ...filter, user: userOf(0) } }],
      [
        'user, of the last day',
        { by: ['user'], filter: { from: new Date(to.getTime() - dayMs), to } },
      ],
    ]
    const rows: Row[] = []
    for (const [what, grouping] of groupings) {
      const ms: number[] = []
      let groups = 0
      for (let round = 0; round < rounds; round++) {
        const startedAt = performance.now()
        groups = (await store.group(grouping, { limit: 1_000 })).page.items.length
        ms.push(performance.now() - startedAt)
      }
      rows.push({ what, groups, ms })
    }
    const table = formatTable(
      ['grouped by', 'groups', 'ms'],
      rows.map(({ what, groups, ms }) => [what, String(groups), formatSpread(ms, 0)]),
    )
    const engine = databaseUrl === undefined ? 'PGlite' : 'PostgreSQL'
    const text = `${records} records of ${users} users in ${days} days are ${sums} hourly sums on ${engine}, and ${tailRecords} records that are not rolled up.
Writing ${tailRecords} records took ${writing.writeMs.toFixed(0)} ms, rolling them up ${writing.rollUpMs.toFixed(0)} ms.

${table}`
    return { text, sums, rows, ...writing }
  } finally {
    await database.close()
  }
}

type UsageDatabase = Parameters<typeof writeBatch>[0] & Parameters<typeof rollUp>[0]

async function measureWriting(database: UsageDatabase) {
  const writeMs = await writeRecords(database)
  const startedAt = performance.now()
  while ((await rollUp(database)) > 0);
  return { writeMs, rollUpMs: performance.now() - startedAt }
}

async function writeRecords(database: UsageDatabase): Promise<number> {
  const records = makeRecords(tailRecords, new Date(to.getTime() - 60_000))
  const startedAt = performance.now()
  for (let at = 0; at < records.length; at += recordsPerBatch) {
    const batch = { id: Bun.randomUUIDv7(), records: records.slice(at, at + recordsPerBatch) }
    await writeBatch(database, batch)
  }
  return performance.now() - startedAt
}
