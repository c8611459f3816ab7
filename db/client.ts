import { type SQL, sql } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { Sql } from 'postgres'
import { newId } from '#lib/id.ts'
import type { Log } from '#telemetry/log.ts'
import {
  type ChannelListener,
  createLocalBus,
  createServerBus,
  type Executes,
  type MessageBus,
} from './bus.ts'
import { connectEmbedded, connectServer, requireResponse, withClient } from './connect.ts'
import type { FolderWait } from './data-folder.ts'
import { startEmbeddedServer } from './embedded.ts'
import { migrateDatabase } from './migrate.ts'

/** The database: an embedded one or a server, with the same interface. */
export type Database = {
  readonly kind: 'pglite' | 'postgres'
  /**
   * Identifies this process: the `application_name` of its connections to a server. While other
   * processes see such a connection in `pg_stat_activity`, it has not ended.
   */
  readonly processName: string
  /**
   * Never use this handle inside the callback of one of its transactions: the embedded database has
   * one connection, so that would deadlock.
   */
  readonly drizzle: PostgresJsDatabase
  /**
   * Executes a statement whose text is always the same: the server parses it once per connection,
   * and it takes one round trip instead of two.
   */
  executePrepared<Row extends Record<string, unknown>>(statement: SQL): Promise<readonly Row[]>
  /** Receives the notifications of all processes on a channel, including this one. */
  listen(channel: string, listener: ChannelListener): Promise<void>
  /** Notifies all listening processes. A payload may have 7,900 bytes. */
  notify(channel: string, payload: string): Promise<void>
  /** Notifies once the transaction commits; after a rollback a notification is possible. */
  notifyOnCommit(transaction: Executes, channel: string, payload: string): Promise<void>
  /** Rejects if the database does not respond. */
  ping(): Promise<void>
  close(): Promise<void>
}

export type Transaction = Parameters<Parameters<Database['drizzle']['transaction']>[0]>[0]

export type OpenDatabaseOptions = {
  /** postgres://…; without it, the embedded database of the data folder is opened. */
  databaseUrl?: string | undefined
  dataFolder: string
  /** For the embedded database; absent: another process that has it is an error at once. */
  folderWait?: FolderWait
  /** Connections to a server; the embedded database has one. */
  connectionsMax: number
  log: Log
}

const dialect = new PgDialect()

/** How long `close` waits for running queries. */
const closeTimeoutS = 5
/** The embedded engine has no checkpointer: its write-ahead log grows until an explicit one. */
const walCheckEveryMs = 10_000
const checkpointAfterWalBytes = 64 * 1024 * 1024

/** Opens the database and brings its schema up to date; throws a `DatabaseStartError`. */
export function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  return options.databaseUrl === undefined
    ? openEmbedded(options)
    : openServer(options.databaseUrl, options)
}

async function openEmbedded(options: OpenDatabaseOptions): Promise<Database> {
  const { dataFolder, folderWait, log } = options
  const server = await startEmbeddedServer(dataFolder, log, folderWait)
  try {
    await withClient(connectEmbedded(server), (client) => migrateDatabase(client, log))
  } catch (error) {
    await server.close()
    throw error
  }
  const client = connectEmbedded(server)
  const checkpoints = startCheckpoints(client, log)
  return assemble('pglite', {
    client,
    processName: newId('sluice_'),
    bus: createLocalBus(log),
    async close() {
      clearInterval(checkpoints)
      await client.end({ timeout: closeTimeoutS })
      await server.close()
    },
  })
}

async function openServer(
  url: string,
  { connectionsMax, log }: OpenDatabaseOptions,
): Promise<Database> {
  await withClient(connectServer(url, 1), async (client) => {
    await requireResponse(client)
    await migrateDatabase(client, log)
  })
  const processName = newId('sluice_')
  const client = connectServer(url, connectionsMax, processName)
  return assemble('postgres', {
    client,
    processName,
    bus: createServerBus(client, log),
    close: () => client.end({ timeout: closeTimeoutS }),
  })
}

function assemble(
  kind: Database['kind'],
  parts: { client: Sql; processName: string; bus: MessageBus; close: () => Promise<void> },
): Database {
  const { client } = parts
  const handle = drizzle(client)
  let closed: Promise<void> | undefined
  return {
    kind,
    processName: parts.processName,
    drizzle: handle,
    async executePrepared<Row extends Record<string, unknown>>(statement: SQL) {
      const { sql: text, params } = dialect.sqlToQuery(statement)
      return client.unsafe<Row[]>(text, params as string[], { prepare: true })
    },
    listen: parts.bus.listen,
    notify: parts.bus.notify,
    notifyOnCommit: parts.bus.notifyOnCommit,
    async ping() {
      await handle.execute(sql`select 1`)
    },
    close() {
      closed ??= parts.close()
      return closed
    },
  }
}

function startCheckpoints(client: Sql, log: Log) {
  let checkpointAt = '0/0'
  const check = async () => {
    const [row] = await client<{ position: string; due: boolean }[]>`
      select pg_current_wal_insert_lsn()::text as position,
        pg_current_wal_insert_lsn() - ${checkpointAt}::pg_lsn > ${checkpointAfterWalBytes} as due`
    if (!row?.due) return
    await client`checkpoint`.simple()
    checkpointAt = row.position
  }
  return setInterval(() => {
    check().catch((error: unknown) => log.warn('checkpoint failed', { error }))
  }, walCheckEveryMs)
}
