import { sql } from 'drizzle-orm'
import type { Database } from './client.ts'

/**
 * The first of these groups that is neither a group of this platform nor one of any token. Groups of
 * the platform are locked: a deletion waits for the reference and removes it.
 */
export async function findUnknownGroup(
  handle: Pick<Database['drizzle'], 'execute'>,
  names: readonly string[],
): Promise<string | undefined> {
  if (names.length === 0) return undefined
  const list = sql`(select json_array_elements_text(${JSON.stringify(names)}::json))`
  const groups = await handle.execute<{ name: string }>(sql`
    select name from app_group where name in ${list} for share`)
  const ofTokens = await handle.execute<{ name: string }>(sql`
    select distinct group_name as name from user_group where group_name in ${list}`)
  const known = new Set([...groups, ...ofTokens].map(({ name }) => name))
  return names.find((name) => !known.has(name))
}
