import { inArray } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { appUser } from '#db/schema/auth.ts'

export type UserNames = (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>

/** The name of each user, or the subject of one without a name; absent: a user who never signed in. */
export function createUserNames({ drizzle }: Pick<Database, 'drizzle'>): UserNames {
  const query = createQueryRunner()
  return async (ids) => {
    if (ids.length === 0) return new Map()
    const rows = await query(() =>
      drizzle
        .select({ id: appUser.id, name: appUser.name, subject: appUser.subject })
        .from(appUser)
        .where(inArray(appUser.id, [...new Set(ids)])),
    )
    return new Map(rows.map(({ id, name, subject }) => [id, name ?? subject]))
  }
}
