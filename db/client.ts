import { sql } from 'drizzle-orm'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres, { type Options, type Sql } from 'postgres'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import {
  type ChannelListener,
  createLocalBus,
  createServerBus,
  type Executes,
  type MessageBus,
} from './bus.ts'
import { startEmbeddedServer } from './embedded.ts'
import { migrateDatabase } from './migrate.ts'
import { DatabaseStartError } from './start-error.ts'

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

const connectTimeoutS = 5
/** How long work that is under way may take when the database is closed. */
const closeTimeoutS = 5
/** A server that comes back is noticed within this time. */
const reconnectPauseMaxS = 1
/** The embedded engine has no checkpointer, so its log grows until somebody asks for one. */
const logCheckEveryMs = 10_000
const checkpointAfterLogBytes = 64 * 1024 * 1024

type ClientOptions = Options<Record<string, never>>

/** Opens the database and brings its schema up to date; throws a `DatabaseStartError`. */
export function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  return options.databaseUrl === undefined
    ? openEmbedded(options)
    : openServer(options.databaseUrl, options)
}

async function openEmbedded({ dataFolder, log }: OpenDatabaseOptions): Promise<Database> {
  const server = await startEmbeddedServer(dataFolder, log)
  // Two connections would share one session, down to the unnamed portal: results would mix.
  const connect = () =>
    postgres(
      clientOptions({
        path: server.socketPath,
        user: 'postgres',
        database: 'postgres',
        max: 1,
        max_lifetime: null,
      }),
    )
  try {
    await withClient(connect(), migrateDatabase)
  } catch (error) {
    await server.close()
    throw error
  }
  const client = connect()
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
  const connect = (max: number) => {
    try {
      return postgres(url, clientOptions({ max }))
    } catch (error) {
      throw new DatabaseStartError('DATABASE_URL is not a PostgreSQL URL.', { cause: error })
    }
  }
  await withClient(connect(1), async (client) => {
    await requireAnswer(client)
    await migrateDatabase(client)
  })
  const client = connect(connectionsMax)
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

function clientOptions(own: ClientOptions): ClientOptions {
  return {
    connect_timeout: connectTimeoutS,
    backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, reconnectPauseMaxS),
    // Saves a query on every new connection; drizzle converts arrays by itself.
    fetch_types: false,
    connection: { application_name: 'sluice' },
    onnotice: () => {},
    ...own,
  }
}

/** Runs with a client of its own, because drizzle changes the client that it is given. */
async function withClient(client: Sql, work: (client: Sql) => Promise<void>): Promise<void> {
  try {
    await work(client)
  } finally {
    await client.end({ timeout: 0 })
  }
}

async function requireAnswer(client: Sql): Promise<void> {
  try {
    await withTimeLimit(client`select 1`.execute(), connectTimeoutS * 1000, () => {
      return new Error(`no answer within ${connectTimeoutS} s`)
    })
  } catch (error) {
    const { host, port } = client.options
    const places = host.map((name, index) => `${name}:${port[index]}`).join(', ')
    const reason = error instanceof Error ? error.message : String(error)
    throw new DatabaseStartError(`PostgreSQL at ${places} cannot be used: ${reason}`, {
      cause: error,
    })
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
