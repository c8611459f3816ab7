import { afterEach, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres, { type Sql } from 'postgres'
import { type Database, openDatabase } from '#db/client.ts'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** The lock of `index-builds.ts`. */
const buildLock = 7_420_136_560
const index = 'audit_entry_action'
const needsServer = test.skipIf(serverUrl === undefined)

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function createPlace(): Promise<TestPlace> {
  const place = await createTestPlace()
  cleanups.push(place.remove)
  return place
}

async function open(place: TestPlace): Promise<Database> {
  const database = await openDatabase({ ...place, connectionsMax: 2, log: quietLog })
  cleanups.push(database.close)
  return database
}

function connect({ databaseUrl = '' }: TestPlace): Sql {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  cleanups.push(() => client.end())
  return client
}

async function isBuilt({ drizzle }: Database): Promise<boolean> {
  const rows = await drizzle.execute(
    `select from pg_index where indexrelid = to_regclass('${index}') and indisvalid`,
  )
  return rows.length === 1
}

const insert = `
  insert into audit_entry (id, at, action, resource_type, resource_id, changes)
  values (gen_random_uuid(), now(), 'group.create', 'group', 'g', '{}')`

test('a start builds an index that is missing, or that an interrupted build left', async () => {
  const place = await createPlace()
  const leave = async (statement: string) => {
    const database = await openDatabase({ ...place, connectionsMax: 2, log: quietLog })
    expect(await isBuilt(database)).toBeTrue()
    await database.drizzle.execute(statement)
    expect(await isBuilt(database)).toBeFalse()
    await database.close()
  }
  await leave(`drop index ${index}`)
  await leave(`update pg_index set indisvalid = false where indexrelid = to_regclass('${index}')`)
  expect(await isBuilt(await open(place))).toBeTrue()
})

needsServer('entries are written while an index is built', async () => {
  const place = await createPlace()
  const [earlier, other, watcher] = [connect(place), connect(place), connect(place)]
  const before = await open(place)
  await before.drizzle.execute(`drop index ${index}`)
  await earlier.unsafe('begin')
  await earlier.unsafe(insert)
  const opening = open(place)
  await eventually('the build waits', async () => {
    const waiting = await watcher`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
        and query ilike 'create index concurrently%'`
    return waiting.length === 1
  })
  await other.unsafe(`set lock_timeout = '10s'; ${insert}`)
  await earlier.unsafe('commit')
  expect(await isBuilt(await opening)).toBeTrue()
})

needsServer('a start does not wait for a build of another process', async () => {
  const place = await createPlace()
  const other = connect(place)
  const before = await open(place)
  await before.drizzle.execute(`drop index ${index}`)
  await other`select pg_advisory_lock(${buildLock})`
  expect(await isBuilt(await open(place))).toBeFalse()
})

test('no later migration blocks writes for the build of an index on a table with rows', () => {
  const folder = join(import.meta.dir, '../../db/migrations')
  const blocking = readdirSync(folder)
    .filter((name) => name.endsWith('.sql') && name > '0023_~')
    .flatMap((name) => {
      const sql = readFileSync(join(folder, name), 'utf8')
      const created = new Set([...sql.matchAll(/create table "(\w+)"/gi)].map(([, table]) => table))
      const built = [...sql.matchAll(/create (?:unique )?index "(\w+)" on "(\w+)"/gi)]
      return built.flatMap(([, made, table]) => (created.has(table) ? [] : [made]))
    })
  expect(blocking).toEqual([])
})
