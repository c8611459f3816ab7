import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { type Database, openDatabase } from '#db/client.ts'
import type { Log } from '#telemetry/log.ts'
import { quietLog } from './quiet-log.ts'
import { cacheFolder, databaseFolder } from './temporary-folders.ts'

/** The server that the tests use; without it they use the embedded database. */
export const serverUrl = process.env['DATABASE_URL']

/** A separate one for every release of the engine and every set of migrations. */
const templateVersion = hashTemplate()
const templateDatabase = `sluice_template_${templateVersion}`

export type TestPlace = {
  /** The parameters for `openDatabase` to open the same database again. */
  readonly databaseUrl: string | undefined
  readonly dataFolder: string
  /** Removes the database; all of its users must be closed before. */
  remove(): Promise<void>
}

export type TestDatabase = Database & { readonly place: TestPlace }

/**
 * Prepares what only the first database on a machine needs, and which takes longer than a test may.
 */
export async function prepareDatabases(): Promise<void> {
  if (serverUrl === undefined) await templateCluster()
  else await prepareTemplateDatabase(serverUrl)
}

/** A private, migrated database; `close` removes it. */
export async function openTestDatabase(log: Log = quietLog): Promise<TestDatabase> {
  const place = await createTestPlace()
  const database = await openDatabase({ ...place, connectionsMax: 4, log })
  return {
    ...database,
    place,
    async close() {
      await database.close()
      await place.remove()
    },
  }
}

/** A database with tables and no rows, under its own name in the server or in a folder. */
export async function createTestPlace(): Promise<TestPlace> {
  if (serverUrl === undefined) return createEmbeddedPlace()
  return createServerPlace(` template ${templateDatabase}`)
}

/** The same without tables, if there is a server. */
export async function createBarePlace(): Promise<TestPlace> {
  return serverUrl === undefined ? createEmbeddedPlace() : createServerPlace('')
}

async function createServerPlace(from: string): Promise<TestPlace> {
  const dataFolder = mkdtempSync(join(databaseFolder(), 'sluice-test-'))
  const name = `sluice_test_${crypto.randomUUID().replaceAll('-', '')}`
  await onServer(`create database ${name}${from} strategy file_copy`)
  return {
    databaseUrl: urlOf(name),
    dataFolder,
    async remove() {
      rmSync(dataFolder, { recursive: true, force: true })
      await onServer(`drop database if exists ${name} with (force)`)
    },
  }
}

/** A data folder whose embedded database exists, so that opening it is quick. */
export async function createEmbeddedPlace(folderName = ''): Promise<TestPlace> {
  const outerFolder = mkdtempSync(join(databaseFolder(), 'sluice-test-'))
  const dataFolder = join(outerFolder, folderName)
  cpSync(await templateCluster(), join(dataFolder, 'pglite'), { recursive: true })
  return {
    databaseUrl: undefined,
    dataFolder,
    remove: async () => rmSync(outerFolder, { recursive: true, force: true }),
  }
}

/** Runs a statement in the server's own database. */
export async function onServer(statement: string): Promise<void> {
  if (serverUrl === undefined) throw new Error('there is no server')
  const client = postgres(serverUrl, { max: 1, onnotice: () => {} })
  await client.unsafe(statement)
  await client.end()
}

function urlOf(name: string): string {
  const url = new URL(serverUrl ?? '')
  url.pathname = `/${name}`
  // A busy machine is no unreachable server.
  url.searchParams.set('connect_timeout', '60')
  return url.href
}

/**
 * Creating the tables takes ten times as long as copying them: one database is kept for all test
 * runs.
 */
async function prepareTemplateDatabase(url: string): Promise<void> {
  const template = templateDatabase
  const client = postgres(url, { max: 1, onnotice: () => {} })
  // Test processes that start together make it once.
  await client`select pg_advisory_lock(hashtext('sluice tests'))`
  const [found] = await client`select 1 from pg_database where datname = ${template}`
  if (found === undefined) {
    const unfinished = `${template}_unfinished`
    await client.unsafe(`drop database if exists ${unfinished} with (force)`)
    await client.unsafe(`create database ${unfinished}`)
    const place = { databaseUrl: urlOf(unfinished), dataFolder: '' }
    const database = await openDatabase({ ...place, connectionsMax: 1, log: quietLog })
    await database.close()
    await client.unsafe(`alter database ${unfinished} rename to ${template}`)
    await client.unsafe(`alter database ${template} allow_connections false`)
  }
  await client.end()
}

/** Creating a database takes seconds, copying one does not: one is kept for all test runs. */
async function templateCluster(): Promise<string> {
  // No user can read that of another.
  const template = join(cacheFolder, `sluice-template-${process.getuid?.()}-${templateVersion}`)
  if (existsSync(template)) return template
  // In the folder of this process, which is removed also after Ctrl-C.
  const unfinished = mkdtempSync(join(tmpdir(), 'sluice-template-'))
  const database = await openDatabase({ dataFolder: unfinished, connectionsMax: 1, log: quietLog })
  await database.close()
  try {
    renameSync(join(unfinished, 'pglite'), template)
  } catch (error) {
    // Another test run was faster.
    if (!existsSync(template)) throw error
  }
  rmSync(unfinished, { recursive: true, force: true })
  return template
}

function hashTemplate(): string {
  const project = join(import.meta.dir, '../..')
  const migrations = readdirSync(join(project, 'db/migrations'))
    .filter((name) => name.endsWith('.sql'))
    .map((name) => `db/migrations/${name}`)
  const contents = [
    'node_modules/@electric-sql/pglite/package.json',
    'db/pglite-engine.ts',
    ...migrations.toSorted(),
  ].map((path) => readFileSync(join(project, path), 'utf8'))
  return new Bun.CryptoHasher('sha256').update(contents.join('\0')).digest('hex').slice(0, 16)
}
