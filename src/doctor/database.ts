import { existsSync } from 'node:fs'
import { findLockHolder } from '#db/data-folder.ts'
import { type DatabaseFacts, hasCluster, inspectDatabase } from '#db/inspect.ts'
import { type Finding, fail, ok, warn } from '#doctor/finding.ts'
import { placeOf, reasonOf } from '#doctor/format.ts'
import type { CheckGroup, CheckInputs } from './check.ts'
import { clockFinding } from './clock.ts'

const name = 'database'
const minVectors = '0.8.0'
const advisedVectors = '0.8.4'

/** The database; it is inspected and not changed. */
export const database: CheckGroup = {
  name,
  limitMs: () => 30_000,
  check: ({ config, ...inputs }) =>
    config.databaseUrl === undefined
      ? embedded({ config, ...inputs })
      : server({ config, ...inputs }, config.databaseUrl),
}

async function embedded(inputs: CheckInputs): Promise<readonly Finding[]> {
  const folder = inputs.config.data
  if (!existsSync(folder)) return [notCreatedYet]
  const holder = findLockHolder(folder)
  if (holder !== null) {
    const who = holder.pid === null ? 'Another process' : `Process ${holder.pid}`
    const detail = `${who} uses the embedded database, as a running server does, so it is not opened`
    return [ok(`${name} lock`, detail)]
  }
  const free = ok(`${name} lock`, 'no server uses the embedded database')
  if (!hasCluster(folder)) return [free, notCreatedYet]
  const facts = await inspect(inputs, `Free disk space, or restore ${folder} from a backup.`)
  if (!isFacts(facts)) return [free, facts]
  return [
    free,
    ok(name, `embedded, version ${facts.serverVersion}`),
    migrationsFinding(facts),
    vectorsFinding(facts),
  ]
}

const notCreatedYet = ok(name, 'embedded; created at the first start')

async function server(inputs: CheckInputs, url: string): Promise<readonly Finding[]> {
  const facts = await inspect(
    inputs,
    'Start PostgreSQL, allow the connection, or correct DATABASE_URL (host, user, password, database).',
  )
  if (!isFacts(facts)) return [facts]
  return [
    ok(name, `PostgreSQL ${facts.serverVersion} at ${placeOf(url)}`),
    migrationsFinding(facts),
    vectorsFinding(facts),
    connectionsFinding(facts, inputs),
    clockFinding('the database', facts.clockAheadMs),
  ]
}

async function inspect(
  { config, log, now }: CheckInputs,
  advice: string,
): Promise<DatabaseFacts | Finding> {
  const { databaseUrl, data } = config
  try {
    return await inspectDatabase({ databaseUrl, dataFolder: data, log, now })
  } catch (error) {
    return fail(name, reasonOf(error), advice)
  }
}

function isFacts(found: DatabaseFacts | Finding): found is DatabaseFacts {
  return 'serverVersion' in found
}

function migrationsFinding({ migrations }: DatabaseFacts): Finding {
  const check = 'schema'
  const { applied, pending, unknown, isCompatible } = migrations
  if (!isCompatible) {
    return fail(
      check,
      `a newer version migrated the database (${unknown} unknown migrations)`,
      'Start that version, or restore a backup from before the migration.',
    )
  }
  if (unknown > 0) {
    const added = `${unknown} migrations of a newer version, with which this one is compatible`
    return ok(check, `${applied} migrations, and ${added}`)
  }
  if (pending === 0) return ok(check, `${applied} migrations, up to date`)
  const detail = `${pending} migrations pending; applied at the next start`
  // A database without migrations was never used.
  if (applied === 0) return ok(check, detail)
  return warn(check, detail, 'Back up the database, then start this version.')
}

function vectorsFinding({ vectorVersion, vectorAvailable }: DatabaseFacts): Finding {
  const check = 'pgvector'
  const version = vectorVersion ?? vectorAvailable
  if (version === null) {
    return fail(
      check,
      'not available on the server',
      `Install pgvector ${advisedVectors} or later on the PostgreSQL server.`,
    )
  }
  const detail =
    vectorVersion === null
      ? `version ${version} is available; installed at the first start`
      : `version ${version}`
  const advice = `Install pgvector ${advisedVectors} on the server and run "alter extension vector update".`
  if (Bun.semver.order(threeParts(version), minVectors) < 0) {
    return fail(check, `${detail}; 0.8 or later is required`, advice)
  }
  if (Bun.semver.order(threeParts(version), advisedVectors) < 0) {
    return warn(check, `${detail}; ${advisedVectors} and later fix known bugs`, advice)
  }
  return ok(check, detail)
}

/** Extensions have versions of two or three parts. */
function threeParts(version: string): string {
  return /^\d+\.\d+$/.test(version) ? `${version}.0` : version
}

/** Per worker, in addition to its pool: the connection that listens. */
const ownConnections = 1

function connectionsFinding({ connections }: DatabaseFacts, { config }: CheckInputs): Finding {
  const check = 'connections'
  const { usable, used } = connections
  const needed = config.workers * (config.databaseConnectionsMax + ownConnections)
  const detail = `the workers need ${needed}; the server allows ${usable}, ${used} in use`
  const advice =
    'Raise max_connections of the server, or lower database_connections_max or workers.'
  if (needed > usable) return fail(check, detail, advice)
  return needed > usable / 2
    ? warn(check, detail, `${advice} A second replica would not fit.`)
    : ok(check, detail)
}
