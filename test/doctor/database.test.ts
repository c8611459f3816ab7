import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { type Database, openDatabase } from '#db/client.ts'
import {
  createBarePlace,
  createEmbeddedPlace,
  createTestPlace,
  serverUrl,
  type TestPlace,
} from '#test/support/database.ts'
import { stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { type DoctorRun, runDoctor } from './run-doctor.ts'

/** The doctor: databases, which are inspected and not changed. */

let places: TestPlace[]
beforeEach(() => {
  places = []
})
afterEach(async () => {
  await stopProcesses()
  for (const place of places) await place.remove()
})

async function newPlace(make: () => Promise<TestPlace> = createTestPlace): Promise<TestPlace> {
  const place = await make()
  places.push(place)
  return place
}

/** A migrated database with a change applied. */
async function doctorAfter(
  change: (handle: Database['drizzle']) => Promise<unknown>,
  environment: Record<string, string> = {},
): Promise<DoctorRun> {
  const place = await newPlace()
  await changed(place, change)
  return doctorOf(place, environment)
}

async function changed(
  place: TestPlace,
  change: (handle: Database['drizzle']) => Promise<unknown>,
): Promise<void> {
  const database = await openDatabase({ ...place, connectionsMax: 1, log: quietLog })
  await change(database.drizzle)
  await database.close()
}

function doctorOf(
  { databaseUrl, dataFolder }: TestPlace,
  environment: Record<string, string> = {},
): Promise<DoctorRun> {
  const url = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }
  return runDoctor({ dataFolder, environment: { ...url, ...environment } })
}

const nothing = async () => {}

test('an up-to-date database passes', async () => {
  const { exitCode, finding } = await doctorAfter(nothing)
  expect(exitCode).toBe(0)
  expect(finding('database').verdict).toBe('ok')
  expect(finding('schema').detail).toMatch(/^\d+ migrations, up to date$/)
  expect(finding('pgvector').verdict).not.toBe('fail')
})

const laterMigration = sql`
  insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 99999999999999)`

test('a database of a newer version that only added to it passes', async () => {
  const { exitCode, finding } = await doctorAfter((handle) => handle.execute(laterMigration))
  expect([exitCode, finding('schema').verdict]).toEqual([0, 'ok'])
  expect(finding('schema').detail).toContain('1 migrations of a newer version')
})

test('a database of an incompatible newer version fails', async () => {
  const { exitCode, finding } = await doctorAfter(async (handle) => {
    await handle.execute(laterMigration)
    await handle.execute(sql`create table schema_level as select 2 as level`)
  })
  expect([exitCode, finding('schema').verdict]).toEqual([1, 'fail'])
  expect(finding('schema').detail).toContain('a newer version')
})

test('pending migrations are reported and not applied', async () => {
  const forgetLast = sql`delete from drizzle.__drizzle_migrations where created_at =
    (select max(created_at) from drizzle.__drizzle_migrations)`
  const place = await newPlace()
  await changed(place, (handle) => handle.execute(forgetLast))
  for (const _ of ['once', 'and again']) {
    const { exitCode, finding } = await doctorOf(place)
    expect([exitCode, finding('schema').verdict]).toEqual([0, 'warn'])
    expect(finding('schema').detail).toStartWith('1 migrations pending')
    expect(finding('schema').advice).toContain('Back up the database')
  }
})

test.each([
  ['0.7.4', 'fail'],
  ['0.8.0', 'warn'],
  ['0.8.4', 'ok'],
  ['0.10.1', 'ok'],
  ['0.9', 'ok'],
])('pgvector %s: %s', async (version, verdict) => {
  const { finding } = await doctorAfter((handle) =>
    handle.execute(sql`update pg_extension set extversion = ${version} where extname = 'vector'`),
  )
  expect(finding('pgvector').verdict).toBe(verdict as 'ok')
  expect(finding('pgvector').detail).toContain(version)
})

test('a damaged embedded database fails, and the other checks still run', async () => {
  const { dataFolder } = await newPlace(createEmbeddedPlace)
  await Bun.write(`${dataFolder}/pglite/global/pg_control`, 'nonsense')
  const { exitCode, finding, report } = await runDoctor({ dataFolder })
  expect([exitCode, finding('database').verdict]).toEqual([1, 'fail'])
  expect(report.findings.map(({ check }) => check)).toContain('upstreams')
})

test('an embedded database is only inspected and can be opened afterwards', async () => {
  const place = await newPlace(createEmbeddedPlace)
  expect((await doctorOf(place)).finding('database lock').detail).toStartWith('no server uses')
  await changed(place, (handle) => handle.execute(sql`select 1`))
})

test('an unreachable server fails without printing a password', async () => {
  const run = await runDoctor({
    dataFolder: temporaryFolder(),
    environment: { DATABASE_URL: 'postgres://ann:hunter22@127.0.0.1:1/sluice' },
  })
  expect([run.exitCode, run.finding('database').verdict]).toEqual([1, 'fail'])
  expect(run.finding('database').detail).toContain('127.0.0.1:1')
  expect(run.finding('database').advice).toContain('DATABASE_URL')
  expect(run.stdout).not.toContain('hunter22')
})

test('a server that accepts a connection and never responds fails after a timeout', async () => {
  using silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { finding } = await runDoctor({
    environment: { DATABASE_URL: `postgres://ann@127.0.0.1:${silent.port}/sluice` },
  })
  expect(finding('database').detail).toMatch(/no response within|CONNECT_TIMEOUT/)
})

describe.if(serverUrl !== undefined)('a server', () => {
  test('reports its version, clock and connections', async () => {
    const { finding } = await doctorAfter(nothing)
    expect(finding('database').detail).toMatch(/^PostgreSQL \d+/)
    expect(finding('clock of the database').verdict).toBe('ok')
    expect(finding('connections')).toMatchObject({ verdict: 'ok' })
    expect(finding('connections').detail).toStartWith('the workers need 9;')
  })

  test('with fewer connections than the workers may open fails', async () => {
    const { exitCode, finding } = await doctorAfter(nothing, { SLUICE_WORKERS: '2000' })
    expect([exitCode, finding('connections').verdict]).toEqual([1, 'fail'])
    expect(finding('connections').advice).toContain('max_connections')
  })

  test('without tables will be migrated at the first start', async () => {
    const { exitCode, finding } = await doctorOf(await newPlace(createBarePlace))
    expect([exitCode, finding('schema').verdict]).toEqual([0, 'ok'])
    expect(finding('schema').detail).toContain('applied at the next start')
    expect(finding('pgvector').detail).toContain('installed at the first start')
  })
})
