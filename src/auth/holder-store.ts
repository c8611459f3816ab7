import { eq } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { apiKey, appUser, groupMember } from '#db/schema/auth.ts'
import { holder, membershipOf, readKey, type StoredKey, storedKey } from './key-store.ts'

/** A user as the database knows them. */
export type StoredUser = Pick<
  StoredKey,
  'userId' | 'subject' | 'name' | 'disabledAt' | 'membership'
>

/** Users and API keys by id, for work that runs later than the request that started it. */
export function createHolderTable(drizzle: Database['drizzle'], query: QueryRunner) {
  return {
    findKeyById: (keyId: string): Promise<StoredKey | undefined> =>
      query(async () => {
        const rows = await drizzle
          .select(storedKey)
          .from(apiKey)
          .innerJoin(appUser, eq(appUser.id, apiKey.userId))
          .leftJoin(groupMember, eq(groupMember.userId, apiKey.userId))
          .where(eq(apiKey.id, keyId))
        const [first] = rows
        if (first === undefined) return undefined
        const { group: _, source: __, ...key } = first
        return { ...readKey(key), replacedUntil: null, membership: membershipOf(rows) }
      }),

    findUser: (userId: string): Promise<StoredUser | undefined> =>
      query(async () => {
        const rows = await drizzle
          .select(holder)
          .from(appUser)
          .leftJoin(groupMember, eq(groupMember.userId, appUser.id))
          .where(eq(appUser.id, userId))
        const [first] = rows
        if (first === undefined) return undefined
        const { group: _, source: __, ...user } = first
        return { ...user, membership: membershipOf(rows) }
      }),
  }
}
