import type { Database } from '#db/client.ts'
import { appUser } from '#db/schema/auth.ts'

/**
 * Adds a user unless there is one. Any conflict is one of the same user, since the id follows from the
 * subject; of concurrent first requests, one may meet the subject of another before its id.
 */
export async function addUser(
  handle: Pick<Database['drizzle'], 'insert'>,
  user: typeof appUser.$inferInsert,
): Promise<void> {
  await handle.insert(appUser).values(user).onConflictDoNothing()
}
