import { getTableColumns, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'

/** The columns of a table, and rows given as a JSON array with the keys of `$inferInsert`. */
export function rowsOf(table: PgTable) {
  const columns = Object.entries(getTableColumns(table))
  const comma = sql.raw(', ')
  const names = columns.map(([, { name }]) => sql.identifier(name))
  const types = columns.map(
    ([key, column]) => sql`${sql.identifier(key)} ${sql.raw(column.getSQLType())}`,
  )
  return {
    columns: sql.join(names, comma),
    given: (json: string) =>
      sql`json_to_recordset(${json}::json) as given(${sql.join(types, comma)})`,
  }
}
