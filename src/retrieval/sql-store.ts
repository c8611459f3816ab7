import { type SQL, sql } from 'drizzle-orm'
import { share } from '#db/schema/files.ts'
import { collection } from '#db/schema/retrieval.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'

/** SQL fragments that several stores share. */

export function uuidArray(ids: readonly string[]): SQL {
  return sql`${`{${ids.join(',')}}`}::uuid[]`
}

/** A `text[]`; texts with NUL, which PostgreSQL cannot store, are left out. */
export function textArray(texts: readonly string[]): SQL {
  const items = texts
    .filter((text) => !text.includes('\0'))
    .map((text) => `"${text.toWellFormed().replace(/["\\]/g, '\\$&')}"`)
  return sql`${`{${items.join(',')}}`}::text[]`
}

/** The last two arguments of the functions that decide about rights. */
export function callerArgs({ userId, groups }: RequestPrincipal): SQL {
  return sql`${userId}::uuid, ${textArray(groups)}`
}

/** The caller's rank on `collection`, 1 to 4; null where they may not see it. */
export function collectionRank(caller: RequestPrincipal): SQL {
  return sql`(
    case when ${collection.ownerId} = ${caller.userId}::uuid then 4 else (
      select max(${share.role}) from ${share}
      where ${share.resourceType} = 'collection' and ${share.resourceId} = ${collection.id}
        and is_granted_to(${share.principalType}, ${share.principalId}, ${callerArgs(caller)})) end)`
}

export function instant(at: Date): SQL {
  return sql`${at.toISOString()}::timestamptz`
}
