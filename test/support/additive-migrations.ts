/**
 * Statements after which the previous version still runs, as patterns over normalised SQL: new tables,
 * nullable columns or columns with a constant default, indexes that refuse nothing, new functions and views.
 */
const additive: readonly RegExp[] = [
  /^create table (if not exists )?"\w+" \(/,
  /^create index (concurrently )?(if not exists )?"\w+" on /,
  /^create (function|view) /,
  /^comment on /,
]
const addColumn = /^alter table "(\w+)" add column "\w+" (?<definition>.+)$/
const ofTable = /^(?:alter table|create unique index "\w+" on) "(\w+)"/

/** A statement that marks its migration as one that earlier versions cannot live with. */
const raisesLevel =
  /^(create table "?schema_level"?|insert into "?schema_level"?|update "?schema_level"?)\b/

/**
 * The statements of a migration with which the previous version might fail. None if it raises the
 * level of the schema, as the first migration of a minor version may.
 */
export function nonAdditiveStatements(migration: string): readonly string[] {
  const statements = migration
    .replaceAll(/--(?!> statement-breakpoint).*$/gm, '')
    .split(/--> statement-breakpoint|;\s*$/m)
    .map(normalise)
    .filter((statement) => statement !== '')
  if (statements.some((statement) => raisesLevel.test(statement))) return []
  const created = new Set(
    statements.flatMap((each) => /^create table (?:if not exists )?"(\w+)"/.exec(each)?.[1] ?? []),
  )
  return statements.filter((statement) => !isAdditive(statement, created))
}

function isAdditive(statement: string, created: ReadonlySet<string>): boolean {
  if (additive.some((pattern) => pattern.test(statement))) return true
  // The previous version writes no rows of a new table.
  const table = ofTable.exec(statement)?.[1]
  if (table !== undefined && created.has(table)) return true
  const definition = addColumn.exec(statement)?.groups?.['definition'] ?? null
  if (definition === null || definition.includes(' check ')) return false
  const isOptional = !definition.includes('not null') || definition.includes(' default ')
  return isOptional && !/\b(unique|primary key|references)\b/.test(definition)
}

function normalise(statement: string): string {
  return statement.replaceAll(/\s+/g, ' ').replace(/;$/, '').trim().toLowerCase()
}
