import { expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { openDatabase } from '#db/client.ts'
import { createTestPlace } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** The version check of pgvector at start. */
async function startWith(version: string): Promise<string> {
  const place = await createTestPlace()
  const options = { ...place, connectionsMax: 1, log: quietLog }
  const database = await openDatabase(options)
  await database.drizzle.execute(sql`
    update pg_extension set extversion = ${version} where extname = 'vector'`)
  await database.close()
  try {
    await (await openDatabase(options)).close()
    return 'started'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await place.remove()
  }
}

test.each(['0.7.4', '0.5.0'])(
  'a database with pgvector %s is refused with a remedy',
  async (version) => {
    expect(await startWith(version)).toMatch(
      new RegExp(
        `has pgvector ${version}; 0.8 or later is required.*alter extension vector update`,
      ),
    )
  },
)

test.each(['0.8.0', '0.10.1', '1.0.0'])(
  'a database with pgvector %s is accepted',
  async (version) => {
    expect(await startWith(version)).toBe('started')
  },
)
