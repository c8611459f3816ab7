import postgres, { type Options, type Sql } from 'postgres'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { EmbeddedServer } from './embedded.ts'
import { DatabaseStartError } from './start-error.ts'

type ClientOptions = Options<Record<string, never>>

/** `connect_timeout` in a URL takes precedence. */
const connectTimeoutS = 5
/** A restarted server is noticed within this time. */
const reconnectBackoffMaxS = 1

/** One connection: several would share one session and its unnamed portal, and mix results. */
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

/**
 * Connects on the first query; throws a `DatabaseStartError` for an invalid URL. The name is the
 * `application_name` of the connections.
 */
export function connectServer(url: string, max: number, name = 'sluice'): Sql {
  try {
    const [, timeoutS = connectTimeoutS] = /[?&]connect_timeout=(\d+)/.exec(url) ?? []
    const own = { max, connect_timeout: Number(timeoutS), connection: { application_name: name } }
    return postgres(url, clientOptions(own))
  } catch (error) {
    throw new DatabaseStartError('DATABASE_URL is not a PostgreSQL URL.', { cause: error })
  }
}

/** Closes the client afterwards. For a separate client, because drizzle modifies its client. */
export async function withClient<T>(client: Sql, work: (client: Sql) => Promise<T>): Promise<T> {
  try {
    return await work(client)
  } finally {
    await client.end({ timeout: 0 })
  }
}

/** Throws a `DatabaseStartError` with the addresses and no credential. */
export async function requireResponse(client: Sql): Promise<void> {
  const { host, port, connect_timeout: timeoutS } = client.options
  try {
    await withTimeLimit(client`select 1`.execute(), timeoutS * 1000, () => {
      return new Error(`no response within ${timeoutS} s`)
    })
  } catch (error) {
    const addresses = host.map((name, index) => `${name}:${port[index]}`).join(', ')
    const reason = error instanceof Error ? error.message : String(error)
    throw new DatabaseStartError(`PostgreSQL at ${addresses} cannot be used: ${reason}`, {
      cause: error,
    })
  }
}

function clientOptions(own: ClientOptions): ClientOptions {
  return {
    connect_timeout: connectTimeoutS,
    backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, reconnectBackoffMaxS),
    // Saves a query per connection; drizzle converts arrays itself.
    fetch_types: false,
    onnotice: () => {},
    ...own,
  }
}
