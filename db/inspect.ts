import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Sql } from 'postgres'
import type { Log } from '#telemetry/log.ts'
import { connectEmbedded, connectServer, requireResponse, withClient } from './connect.ts'
import { startEmbeddedServer } from './embedded.ts'
import { type MigrationState, readMigrationState } from './migrate.ts'

/** The state of a database, for the doctor. */
export type DatabaseFacts = {
  readonly serverVersion: string
  /** Installed in this database; null: not yet. */
  readonly vectorVersion: string | null
  /** Available on the server; null: none. */
  readonly vectorAvailable: string | null
  readonly migrations: MigrationState
  readonly connections: { readonly usable: number; readonly used: number }
  /** Difference of its clock to that of this machine. */
  readonly clockAheadMs: number
}

export type InspectOptions = {
  databaseUrl: string | undefined
  dataFolder: string
  log: Pick<Log, 'info' | 'error'>
  now: () => Date
}

/** Whether a data folder holds an embedded database. */
export function hasCluster(dataFolder: string): boolean {
  return existsSync(join(dataFolder, 'pglite', 'PG_VERSION'))
}

/** Reads the state without changes; throws a `DatabaseStartError`. */
export async function inspectDatabase(options: InspectOptions): Promise<DatabaseFacts> {
  const { databaseUrl, dataFolder, log, now } = options
  if (databaseUrl !== undefined) {
    return withClient(connectServer(databaseUrl, 1), async (client) => {
      await requireResponse(client)
      return readFacts(client, now)
    })
  }
  const server = await startEmbeddedServer(dataFolder, log)
  try {
    return await withClient(connectEmbedded(server), (client) => readFacts(client, now))
  } finally {
    await server.close()
  }
}

async function readFacts(client: Sql, now: () => Date): Promise<DatabaseFacts> {
  const clockAheadMs = await readClock(client, now)
  const [row] = await client<Row[]>`
    select current_setting('server_version') as server,
      (select extversion from pg_extension where extname = 'vector') as vector,
      (select default_version from pg_available_extensions where name = 'vector') as available,
      current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int as usable,
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used`
  if (row === undefined) throw new Error('the database returned no row')
  return {
    serverVersion: row.server,
    vectorVersion: row.vector,
    vectorAvailable: row.available,
    migrations: await readMigrationState(client),
    connections: { usable: row.usable, used: row.used },
    clockAheadMs,
  }
}

type Row = {
  server: string
  vector: string | null
  available: string | null
  usable: number
  used: number
}

/** Compares with the middle of the query's duration. */
async function readClock(client: Sql, now: () => Date): Promise<number> {
  const startedAt = now().getTime()
  const [row] = await client<{ ms: number }[]>`
    select extract(epoch from clock_timestamp())::float8 * 1000 as ms`
  const endedAt = now().getTime()
  return (row?.ms ?? endedAt) - (startedAt + endedAt) / 2
}
