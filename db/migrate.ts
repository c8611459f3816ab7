import { drizzle } from 'drizzle-orm/postgres-js'
import type { Sql } from 'postgres'
import type { Log } from '#telemetry/log.ts'
import { buildIndexes, withoutIndexBuilds } from './index-builds.ts'
import { migrations } from './migration-files.ts'
import { DatabaseStartError } from './start-error.ts'

/** When the newest migration of this version was made, in milliseconds. */
export const newestMigration = Math.max(...migrations.map(({ folderMillis }) => folderMillis))

/**
 * A version runs on the migrations of later ones with the same level: they only add. A migration that
 * an earlier version could not live with creates the table `schema_level (level integer)`, or raises
 * its value, and this number.
 */
const schemaLevel = 1

/** Arbitrary; the same in every version of this program. */
const migrationLock = 7_420_136_559
/** How long a start waits for the migration of another process. */
const lockWaitMaxMs = 300_000

/**
 * Migrates the database to the schema of this version. Requires a client with a single connection,
 * because the advisory lock belongs to the session. The migrator itself takes no lock.
 */
export async function migrateDatabase(client: Sql, log: Pick<Log, 'warn'>): Promise<void> {
  try {
    await client`select set_config('lock_timeout', ${`${lockWaitMaxMs}ms`}, false)`
    await client`select pg_advisory_lock(${migrationLock})`
    await createVectorExtension(client)
    await requireVectorVersion(client)
    await rejectUnknownMigrations(client)
    await applyMigrations(client)
    // Also releases the lock: all clients of the embedded engine share one session.
    await client`discard all`.simple()
    await buildIndexes(client, migrations, log)
  } catch (error) {
    if (error instanceof DatabaseStartError) throw error
    throw new DatabaseStartError(`The database cannot be migrated: ${rootMessage(error)}.`, {
      cause: error,
    })
  }
}

/** The migrator of drizzle reads a folder; a binary has none, so this calls what it calls. */
async function applyMigrations(client: Sql): Promise<void> {
  const { dialect, session } = drizzle(client) as unknown as MigratorInternals
  await dialect.migrate(withoutIndexBuilds(migrations), session, {})
}

type MigratorInternals = {
  readonly session: object
  readonly dialect: {
    migrate(files: typeof migrations, session: object, settings: object): Promise<void>
  }
}

/** The message of the database, without the statement that drizzle adds. */
function rootMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : rootMessage(error.cause)
}

async function createVectorExtension(client: Sql): Promise<void> {
  try {
    await client`create extension if not exists vector`
  } catch (error) {
    throw new DatabaseStartError(
      'The database requires the extension pgvector: install it on the PostgreSQL server (0.8 or later) and run "create extension vector" as its administrator.',
      { cause: error },
    )
  }
}

/** Filtered searches of older versions silently miss results. */
async function requireVectorVersion(client: Sql): Promise<void> {
  const [found] = await client<{ version: string }[]>`
    select extversion as version from pg_extension where extname = 'vector'`
  const [major = 0, minor = 0] = (found?.version ?? '').split('.').map(Number)
  if (major > 0 || minor >= 8) return
  throw new DatabaseStartError(
    `The database has pgvector ${found?.version}; 0.8 or later is required: install it on the PostgreSQL server and run "alter extension vector update" as its administrator.`,
  )
}

/** The migrations of a database compared to those of this version. */
export type MigrationState = {
  readonly applied: number
  readonly pending: number
  /** Applied by a newer version. */
  readonly unknown: number
  /** Whether this version runs on them. */
  readonly isCompatible: boolean
}

export async function readMigrationState(client: Sql): Promise<MigrationState> {
  const known = new Set(migrations.map((file) => file.folderMillis))
  const [found] =
    await client`select to_regclass('drizzle.__drizzle_migrations') is not null as yes`
  if (found?.['yes'] !== true) {
    return { applied: 0, pending: known.size, unknown: 0, isCompatible: true }
  }
  const rows = await client<{ when: string }[]>`
    select created_at::text as when from drizzle.__drizzle_migrations`
  const applied = rows.filter((row) => known.has(Number(row.when))).length
  const [pending, unknown] = [known.size - applied, rows.length - applied]
  // The migrator skips what is older than the newest one.
  const isDiverged = pending > 0 && unknown > 0
  const isCompatible = !isDiverged && (await readSchemaLevel(client)) <= schemaLevel
  return { applied, pending, unknown, isCompatible }
}

async function readSchemaLevel(client: Sql): Promise<number> {
  const [table] = await client`select to_regclass('schema_level') is not null as yes`
  if (table?.['yes'] !== true) return 1
  const [row] = await client<{ level: number }[]>`select max(level)::int as level from schema_level`
  return row?.level ?? 1
}

/** The tables of a newer version with another level might be misread. */
async function rejectUnknownMigrations(client: Sql): Promise<void> {
  const { isCompatible } = await readMigrationState(client)
  if (isCompatible) return
  throw new DatabaseStartError(
    'The database was migrated by a newer version of this program that this one is not compatible with; start that version.',
  )
}
