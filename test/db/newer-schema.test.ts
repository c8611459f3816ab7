import { afterEach, expect, test } from 'bun:test'
import { type SQL, sql } from 'drizzle-orm'
import { type Database, openDatabase } from '#db/client.ts'
import { createTestPlace, type TestPlace } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'

const places: TestPlace[] = []

afterEach(async () => {
  for (const place of places.splice(0)) await place.remove()
})

const open = (place: TestPlace): Promise<Database> =>
  openDatabase({ ...place, connectionsMax: 2, log: quietLog })

/** A database with a migration that this version does not know, and what that did. */
async function migrateFurther(statement: SQL): Promise<TestPlace> {
  const place = await createTestPlace()
  places.push(place)
  const database = await open(place)
  await database.drizzle.execute(statement)
  await database.drizzle.execute(
    sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 99999999999999)`,
  )
  await database.close()
  return place
}

async function startErrorOf(place: TestPlace): Promise<string | null> {
  try {
    const database = await open(place)
    await database.ping()
    await database.close()
    return null
  } catch (error) {
    return String(error)
  }
}

const createLevel = (level: number) =>
  sql`create table schema_level as select ${sql.raw(String(level))}::integer as level`

test('a version starts on later migrations that only add', async () => {
  const added = sql`alter table response add column later text`
  expect(await startErrorOf(await migrateFurther(added))).toBeNull()
})

test('a version starts on later migrations of its level', async () => {
  expect(await startErrorOf(await migrateFurther(createLevel(1)))).toBeNull()
})

test('a version refuses to start on migrations of a higher level', async () => {
  const error = await startErrorOf(await migrateFurther(createLevel(2)))
  expect(error).toContain('a newer version of this program')
})

test('a version refuses to start if one of its own migrations is missing below later ones', async () => {
  const forgotten = sql`
    delete from drizzle.__drizzle_migrations
    where id = (select max(id) from drizzle.__drizzle_migrations)`
  const error = await startErrorOf(await migrateFurther(forgotten))
  expect(error).toContain('a newer version of this program')
})
