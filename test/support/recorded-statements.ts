import { PgDialect } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/postgres-js'
import type { Sql } from 'postgres'
import { openTestDatabase, type TestDatabase } from './database.ts'

type Statement = { readonly text: string; readonly params: readonly unknown[] }

export type RecordedDatabase = TestDatabase & {
  /**
   * Runs this; returns its result and the texts of the statements meanwhile, or of those with this id
   * in a parameter.
   */
  statementsOf<T>(
    run: () => Promise<T>,
    id?: string,
  ): Promise<{ readonly result: T; readonly statements: readonly string[] }>
}

/** A test database that records statements, also those in transactions. */
export async function openRecordedDatabase(): Promise<RecordedDatabase> {
  const database = await openTestDatabase()
  const recorded: Statement[] = []
  const dialect = new PgDialect()
  const client: Sql = Reflect.get(database.drizzle, '$client')
  const logger = {
    logQuery: (text: string, params: unknown[]) => void recorded.push({ text, params }),
  }
  return {
    ...database,
    drizzle: drizzle(client, { logger }),
    executePrepared(statement) {
      const { sql: text, params } = dialect.sqlToQuery(statement)
      recorded.push({ text, params })
      return database.executePrepared(statement)
    },
    async statementsOf(run, id = '') {
      const before = recorded.length
      const result = await run()
      const statements = recorded
        .slice(before)
        .flatMap(({ text, params }) => (JSON.stringify(params).includes(id) ? [text] : []))
      return { result, statements }
    },
  }
}
