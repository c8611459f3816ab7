import postgres, { type Options, type Sql } from 'postgres'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { EmbeddedServer } from './embedded.ts'
import { DatabaseStartError } from './start-error.ts'

type ClientOptions = Options<Record<string, never>>

const connectTimeoutS = 5
/** A server that comes back is noticed within this time. */
const reconnectPauseMaxS = 1

/** Two connections would share one session, down to the unnamed portal: results would mix. */
export function connectEmbedded({ socketPath }: Pick<EmbeddedServer, 'socketPath'>): Sql {
  return postgres(
    clientOptions({
      path: socketPath,
      user: 'postgres',
      database: 'postgres',
      max: 1,
      max_lifetime: null,
    }),
  )
}

/** Connects when it is first asked; throws a `DatabaseStartError` for what is no URL. */
export function connectServer(url: string, max: number): Sql {
  try {
    return postgres(url, clientOptions({ max }))
  } catch (error) {
    throw new DatabaseStartError('DATABASE_URL is not a PostgreSQL URL.', { cause: error })
  }
}

/** Runs with a client of its own, because drizzle changes the client that it is given. */
export async function withClient<T>(client: Sql, work: (client: Sql) => Promise<T>): Promise<T> {
  try {
    return await work(client)
  } finally {
    await client.end({ timeout: 0 })
  }
}

/** Throws a `DatabaseStartError` that names the places, and no credential. */
export async function requireAnswer(client: Sql): Promise<void> {
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
