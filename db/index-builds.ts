import type { Sql } from 'postgres'
import type { Log } from '#telemetry/log.ts'
import type { migrations } from './migration-files.ts'

type Migrations = typeof migrations

/** `create index concurrently`: beside writes, which a transaction cannot do. */
const buildPattern = /^\s*create index concurrently "(\w+)"/i

/** Arbitrary; the same in every version of this program. */
const buildLock = 7_420_136_560
/** A build waits for the transactions that were open when it began. */
const waitMaxMs = 60_000

/** The migrations without the builds, which run after them. */
export function withoutIndexBuilds(files: Migrations): Migrations {
  return files.map((file) => ({
    ...file,
    sql: file.sql.filter((statement) => !buildPattern.test(statement)),
  }))
}

/**
 * Builds the indexes that are missing, or that an interrupted build left invalid. Without them queries
 * are slower, so a failed build is left to the next start. One process builds; others do not wait.
 */
export async function buildIndexes(
  client: Sql,
  files: Migrations,
  log: Pick<Log, 'warn'>,
): Promise<void> {
  const builds = new Map(
    files
      .flatMap((file) => file.sql)
      .flatMap((statement) => {
        const name = buildPattern.exec(statement)?.[1]
        return name === undefined ? [] : [[name, statement] as const]
      }),
  )
  const missing = async () => {
    const present = await client<{ name: string }[]>`
      select relname as name from pg_index join pg_class on pg_class.oid = indexrelid
      where indisvalid and pg_table_is_visible(pg_class.oid)`
    return [...builds.keys()].filter((name) => !present.some((index) => index.name === name))
  }
  if ((await missing()).length === 0) return
  const [lock] = await client`select pg_try_advisory_lock(${buildLock}) as held`
  if (lock?.['held'] !== true) return
  await client`select set_config('lock_timeout', ${`${waitMaxMs}ms`}, false)`
  try {
    for (const name of await missing()) {
      await client.unsafe(`drop index concurrently if exists "${name}"`)
      await client.unsafe(builds.get(name) ?? '')
    }
  } catch (error) {
    log.warn('index not built; the next start tries again', { error })
  } finally {
    // Also releases the lock.
    await client`discard all`.simple()
  }
}
