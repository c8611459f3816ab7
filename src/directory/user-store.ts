import { and, eq, like, or, type SQL, sql } from 'drizzle-orm'
import { isPermission, type Permission } from '#auth/permissions.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { appGroup, appUser, userGroup } from '#db/schema/auth.ts'
import type { DirectoryDatabase, Transaction } from '#directory/change-store.ts'
import type { User, UserFilter } from './users.ts'

export type Source = 'idp' | 'manual'

/** A membership of a user from one source. An unknown group grants nothing. */
export type Membership = {
  readonly name: string
  readonly source: Source
  readonly isKnown: boolean
  readonly permissions: readonly Permission[]
}

type Handle = Pick<Transaction, 'select'>

const columns = {
  id: appUser.id,
  kind: appUser.kind,
  subject: appUser.subject,
  name: appUser.name,
  disabledAt: appUser.disabledAt,
  lastSeenAt: appUser.lastSeenAt,
  createdAt: appUser.createdAt,
  createdBy: appUser.createdBy,
}

/** The order of pages must not depend on the collation of the database. */
const sortKey = sql`lower(coalesce(${appUser.name}, ${appUser.subject})) collate "C"`

export function createUserStore({ drizzle }: DirectoryDatabase) {
  const query = createQueryRunner()
  return {
    /** By name; null if there is no user `after`. */
    list: (
      { text, kind }: UserFilter,
      page: { limit: number; after: string | undefined },
    ): Promise<User[] | null> =>
      query(async () => {
        const last = page.after === undefined ? undefined : await positionOf(drizzle, page.after)
        if (last === null) return null
        return drizzle
          .select(columns)
          .from(appUser)
          .where(
            and(
              text === undefined ? undefined : matchesName(text),
              kind === undefined ? undefined : eq(appUser.kind, kind),
              last === undefined
                ? undefined
                : sql`(${sortKey}, ${appUser.id}) > (${last.key}::text, ${last.id}::uuid)`,
            ),
          )
          .orderBy(sortKey, appUser.id)
          .limit(page.limit)
      }),

    find: (id: string): Promise<{ user: User; memberships: readonly Membership[] } | undefined> =>
      query(async () => {
        const user = await findUser(drizzle, id)
        return user === undefined
          ? undefined
          : { user, memberships: await listMemberships(drizzle, id) }
      }),
  }
}

async function positionOf(handle: Handle, id: string) {
  const [row] = await handle
    .select({ id: appUser.id, key: sql<string>`${sortKey}` })
    .from(appUser)
    .where(eq(appUser.id, id))
  return row ?? null
}

function matchesName(text: string): SQL | undefined {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  return or(
    like(sql`lower(${appUser.name})`, pattern),
    like(sql`lower(${appUser.subject})`, pattern),
  )
}

export async function findUser(handle: Handle, id: string): Promise<User | undefined> {
  const [row] = await handle.select(columns).from(appUser).where(eq(appUser.id, id))
  return row
}

export async function listMemberships(handle: Handle, userId: string): Promise<Membership[]> {
  const rows = await handle
    .select({
      name: userGroup.groupName,
      source: userGroup.source,
      permissions: appGroup.permissions,
    })
    .from(userGroup)
    .leftJoin(appGroup, eq(appGroup.name, userGroup.groupName))
    .where(eq(userGroup.userId, userId))
    .orderBy(userGroup.groupName, userGroup.source)
  return rows.map(({ permissions, ...row }) => ({
    ...row,
    isKnown: permissions !== null,
    permissions: (permissions ?? []).filter(isPermission),
  }))
}

export async function changeUser(
  transaction: Transaction,
  id: string,
  fields: Partial<Pick<User, 'name' | 'disabledAt'>>,
): Promise<void> {
  await transaction.update(appUser).set(fields).where(eq(appUser.id, id))
}
