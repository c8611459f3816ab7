import { eq } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { apiKey, appUser, groupMember } from '#db/schema/auth.ts'
import { membershipOf, readKey, type StoredKey } from './key-store.ts'

/** A user as the database knows them. */
export type StoredUser = Pick<
  StoredKey,
  'userId' | 'subject' | 'name' | 'disabledAt' | 'membership'
>

const holder = {
  userId: appUser.id,
  subject: appUser.subject,
  name: appUser.name,
  disabledAt: appUser.disabledAt,
  group: groupMember.groupName,
  source: groupMember.source,
}

/** Users and API keys by id, for work that runs later than the request that started it. */
export function createHolderTable(drizzle: Database['drizzle'], query: QueryRunner) {
  return {
    findKeyById: (keyId: string): Promise<StoredKey | undefined> =>
      query(async () => {
        const rows = await drizzle
          .select({
            ...holder,
            keyId: apiKey.id,
            expiresAt: apiKey.expiresAt,
            revokedAt: apiKey.revokedAt,
            models: apiKey.models,
            scopes: apiKey.scopes,
            limits: apiKey.limits,
          })
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
