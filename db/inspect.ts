import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Sql } from 'postgres'
import type { Log } from '#telemetry/log.ts'
import { connectEmbedded, connectServer, requireAnswer, withClient } from './connect.ts'
import { startEmbeddedServer } from './embedded.ts'
import { type MigrationState, readMigrationState } from './migrate.ts'

/** What a database says of itself. */
export type DatabaseFacts = {
  readonly serverVersion: string
  /** In this database; null: it is not there yet. */
  readonly vectorVersion: string | null
  /** What the server could put there; null: nothing. */
  readonly vectorOffered: string | null
  readonly migrations: MigrationState
  readonly connections: { readonly usable: number; readonly used: number }
  /** How far its clock is before ours. */
  readonly clockAheadMs: number
}

export type InspectOptions = {
  databaseUrl: string | undefined
  dataFolder: string
  log: Pick<Log, 'info' | 'error'>
  now: () => Date
}

/** Whether there is an embedded database in a data folder. */
export function hasCluster(dataFolder: string): boolean {
  return existsSync(join(dataFolder, 'pglite', 'PG_VERSION'))
}

/** Looks at a database and changes nothing; throws a `DatabaseStartError`. */
export async function inspectDatabase(options: InspectOptions): Promise<DatabaseFacts> {
  const { databaseUrl, dataFolder, log, now } = options
  if (databaseUrl !== undefined) {
    return withClient(connectServer(databaseUrl, 1), async (client) => {
      await requireAnswer(client)
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
      (select default_version from pg_available_extensions where name = 'vector') as offered,
      current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int as usable,
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used`
  if (row === undefined) throw new Error('the database answered nothing')
  return {
    serverVersion: row.server,
    vectorVersion: row.vector,
    vectorOffered: row.offered,
    migrations: await readMigrationState(client),
    connections: { usable: row.usable, used: row.used },
    clockAheadMs,
  }
}

type Row = {
  server: string
  vector: string | null
  offered: string | null
  usable: number
  used: number
}

/** Against the middle of the question. */
async function readClock(client: Sql, now: () => Date): Promise<number> {
  const askedAt = now().getTime()
  const [row] = await client<{ ms: number }[]>`
    select extract(epoch from clock_timestamp())::float8 * 1000 as ms`
  const answeredAt = now().getTime()
  return (row?.ms ?? answeredAt) - (askedAt + answeredAt) / 2
}
