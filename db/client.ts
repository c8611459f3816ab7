import { sql } from 'drizzle-orm'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { Sql } from 'postgres'
import type { Log } from '#telemetry/log.ts'
import {
  type ChannelListener,
  createLocalBus,
  createServerBus,
  type Executes,
  type MessageBus,
} from './bus.ts'
import { connectEmbedded, connectServer, requireAnswer, withClient } from './connect.ts'
import { startEmbeddedServer } from './embedded.ts'
import { migrateDatabase } from './migrate.ts'

/** The database, embedded or a server; what is above cannot tell which, except by `kind`. */
export type Database = {
  readonly kind: 'pglite' | 'postgres'
  /**
   * Never use this handle inside the callback of one of its transactions: with the one connection
   * of the embedded database that waits for itself.
   */
  readonly drizzle: PostgresJsDatabase
  /** Hears what any process notifies on a channel from now on, this process included. */
  listen(channel: string, listener: ChannelListener): Promise<void>
  /** Tells every process that listens. A payload may have 7,900 bytes. */
  notify(channel: string, payload: string): Promise<void>
  /** The same once this transaction is committed; where it is not, at most a needless message. */
  notifyOnCommit(transaction: Executes, channel: string, payload: string): Promise<void>
  /** Resolves when the database answers, rejects when it does not. */
  ping(): Promise<void>
  close(): Promise<void>
}

export type OpenDatabaseOptions = {
  /** postgres://…; without it the embedded database of the data folder is opened. */
  databaseUrl?: string | undefined
  dataFolder: string
  /** Connections to a server. The embedded database has one. */
  connectionsMax: number
  log: Log
}

/** How long work that is under way may take when the database is closed. */
const closeTimeoutS = 5
/** The embedded engine has no checkpointer, so its log grows until somebody asks for one. */
const logCheckEveryMs = 10_000
const checkpointAfterLogBytes = 64 * 1024 * 1024

/** Opens the database and brings its schema up to date; throws a `DatabaseStartError`. */
export function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  return options.databaseUrl === undefined
    ? openEmbedded(options)
    : openServer(options.databaseUrl, options)
}

async function openEmbedded({ dataFolder, log }: OpenDatabaseOptions): Promise<Database> {
  const server = await startEmbeddedServer(dataFolder, log)
  try {
    await withClient(connectEmbedded(server), migrateDatabase)
  } catch (error) {
    await server.close()
    throw error
  }
  const client = connectEmbedded(server)
  const checkpoints = keepLogShort(client, log)
  return assemble('pglite', {
    client,
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
    await requireAnswer(client)
    await migrateDatabase(client)
  })
  const client = connectServer(url, connectionsMax)
  return assemble('postgres', {
    client,
    bus: createServerBus(client, log),
    close: () => client.end({ timeout: closeTimeoutS }),
  })
}

function assemble(
  kind: Database['kind'],
  parts: { client: Sql; bus: MessageBus; close: () => Promise<void> },
): Database {
  const handle = drizzle(parts.client)
  let closed: Promise<void> | undefined
  return {
    kind,
    drizzle: handle,
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

function keepLogShort(client: Sql, log: Log) {
  let checkpointAt = '0/0'
  const check = async () => {
    const [row] = await client<{ position: string; due: boolean }[]>`
      select pg_current_wal_insert_lsn()::text as position,
        pg_current_wal_insert_lsn() - ${checkpointAt}::pg_lsn > ${checkpointAfterLogBytes} as due`
    if (!row?.due) return
    await client`checkpoint`.simple()
    checkpointAt = row.position
  }
  return setInterval(() => {
    check().catch((error: unknown) => log.warn('A checkpoint failed.', { error }))
  }, logCheckEveryMs)
}
