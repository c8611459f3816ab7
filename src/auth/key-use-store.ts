import { and, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { apiKey, appUser } from '#db/schema/auth.ts'

type Handle = Database['drizzle']

/** Keys per statement. */
const touchedKeysPerStatement = 1_000
/** The precision of the last use of a key, */
export const lastUseGrainMs = 60_000
/** and of the last request of a user. */
export const lastSeenGrainMs = 3_600_000

/** The times of the last use of keys. */
export function createKeyUseTable(drizzle: Handle) {
  return {
    /** Runs in the background, without a deadline. */
    async markUsed(keyIds: readonly string[], usedAt: Date): Promise<void> {
      // The same order on every replica prevents deadlocks.
      const ordered = [...keyIds].sort()
      for (let start = 0; start < ordered.length; start += touchedKeysPerStatement) {
        await markUsed(drizzle, ordered.slice(start, start + touchedKeysPerStatement), usedAt)
      }
    },
  }
}

async function markUsed(drizzle: Handle, ids: readonly string[], usedAt: Date): Promise<void> {
  const keysFrom = new Date(usedAt.getTime() - lastUseGrainMs)
  const usersFrom = new Date(usedAt.getTime() - lastSeenGrainMs)
  await drizzle
    .update(apiKey)
    .set({ lastUsedAt: usedAt })
    .where(
      and(
        inArray(apiKey.id, [...ids]),
        or(isNull(apiKey.lastUsedAt), lt(apiKey.lastUsedAt, keysFrom)),
      ),
    )
  const isDue = or(isNull(appUser.lastSeenAt), lt(appUser.lastSeenAt, usersFrom))
  const owners = drizzle
    .select({ id: apiKey.userId })
    .from(apiKey)
    .where(inArray(apiKey.id, [...ids]))
  // Another replica that holds the row writes the same value.
  const due = drizzle
    .select({ id: appUser.id })
    .from(appUser)
    .where(and(inArray(appUser.id, owners), isDue))
    .for('update', { skipLocked: true })
  await drizzle.update(appUser).set({ lastSeenAt: usedAt }).where(sql`${appUser.id} in (${due})`)
}
