import { and, eq, like, or, type SQL, sql } from 'drizzle-orm'
import type { Actor } from '#audit/audit.ts'
import { isPermission, type Permission, sortPermissions } from '#auth/permissions.ts'
import type { Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { appGroup, appUser, userGroup } from '#db/schema/auth.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import { conflict, type DirectoryDeps } from './change-store.ts'

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

/** A person seen with a token, or a service account, which has a creator. */
export type User = Readonly<Pick<typeof appUser.$inferSelect, keyof typeof columns>>

/** A user with groups and permissions. */
export type UserDetails = User & {
  readonly groups: readonly {
    readonly name: string
    readonly sources: readonly Source[]
    /** Unknown groups grant nothing. */
    readonly isKnown: boolean
  }[]
  readonly permissions: readonly Permission[]
}

export type Source = 'idp' | 'manual'

export type UserFilter = {
  /** Part of the name or the subject, in any case. */
  readonly text: string | undefined
  readonly kind: User['kind'] | undefined
}

export type UserChange = { readonly isDisabled?: boolean; readonly name?: string }

type Handle = Pick<Transaction, 'select'>

/** The order of pages must not depend on the collation of the database. */
const sortKey = sql`lower(coalesce(${appUser.name}, ${appUser.subject})) collate "C"`

export type Users = ReturnType<typeof createUsers>

/** Unknown users are `not_found`. */
export function createUsers({ database: { drizzle }, makeChange, now }: DirectoryDeps) {
  const query = createQueryRunner()
  return {
    /** By name, after the user `after`. */
    list: ({ text, kind }: UserFilter, { limit, after }: PageRequest): Promise<Page<User>> =>
      query(async () => {
        const last = after === undefined ? undefined : await positionOf(drizzle, after)
        const rows = await drizzle
          .select(columns)
          .from(appUser)
          .where(
            and(
              text === undefined ? undefined : matchesName(text),
              kind === undefined ? undefined : eq(appUser.kind, kind),
              last && sql`(${sortKey}, ${appUser.id}) > (${last.key}::text, ${last.id}::uuid)`,
            ),
          )
          .orderBy(sortKey, appUser.id)
          .limit(limit + 1)
        return pageOf(rows, limit)
      }),

    find: (id: string): Promise<UserDetails> => query(() => findDetails(drizzle, id)),

    /** Throws `conflict` with the code `idp_managed` for the name of a person, which comes from tokens. */
    change: (actor: Actor, id: string, fields: UserChange): Promise<UserDetails> =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        const changes = changesOf(await findUser(transaction, id), fields, now())
        for (const { set, action, before, after } of changes) {
          await transaction.update(appUser).set(set).where(eq(appUser.id, id))
          await record(action, { type: 'user', id }, { before, after })
        }
        if (changes.length > 0) await notify({ what: 'user', id })
        return findDetails(transaction, id)
      }),
  }
}

type FieldChange = {
  readonly set: Partial<User>
  readonly action: string
  readonly before: JsonObject
  readonly after: JsonObject
}

function changesOf(user: User, { name, isDisabled }: UserChange, time: Date): FieldChange[] {
  const changes: FieldChange[] = []
  if (name !== undefined && name !== user.name) {
    if (user.kind === 'user') throw conflict(idpNameError, 'name')
    const before = { name: user.name }
    changes.push({ set: { name }, action: 'user.rename', before, after: { name } })
  }
  const wasDisabled = user.disabledAt !== null
  if (isDisabled !== undefined && isDisabled !== wasDisabled) {
    changes.push({
      set: { disabledAt: isDisabled ? time : null },
      action: isDisabled ? 'user.disable' : 'user.enable',
      before: { disabled: wasDisabled },
      after: { disabled: isDisabled },
    })
  }
  return changes
}

async function positionOf(handle: Handle, id: string) {
  const [row] = await handle
    .select({ id: appUser.id, key: sql<string>`${sortKey}` })
    .from(appUser)
    .where(eq(appUser.id, id))
  if (row !== undefined) return row
  throw new AppError('unprocessable', '"after" must be the id of a user.', { param: 'after' })
}

function matchesName(text: string): SQL | undefined {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  return or(
    like(sql`lower(${appUser.name})`, pattern),
    like(sql`lower(${appUser.subject})`, pattern),
  )
}

export async function findUser(handle: Handle, id: string): Promise<User> {
  const [row] = await handle.select(columns).from(appUser).where(eq(appUser.id, id))
  if (row === undefined) throw userNotFound(id)
  return row
}

/** Merges the sources of each group. */
export async function findDetails(handle: Handle, id: string): Promise<UserDetails> {
  const user = await findUser(handle, id)
  const memberships = await handle
    .select({
      name: userGroup.groupName,
      source: userGroup.source,
      permissions: appGroup.permissions,
    })
    .from(userGroup)
    .leftJoin(appGroup, eq(appGroup.name, userGroup.groupName))
    .where(eq(userGroup.userId, id))
    .orderBy(userGroup.groupName, userGroup.source)
  const byName = Map.groupBy(memberships, ({ name }) => name)
  const permissions = memberships.flatMap((membership) => membership.permissions ?? [])
  return {
    ...user,
    groups: [...byName].map(([name, rows]) => ({
      name,
      sources: rows.map(({ source }) => source),
      isKnown: rows.some((row) => row.permissions !== null),
    })),
    permissions: sortPermissions(permissions.filter(isPermission)),
  }
}

export function userNotFound(id: string): AppError {
  return new AppError('not_found', `There is no user with the id "${id}".`, { param: 'id' })
}

export const idpNameError = {
  code: 'idp_managed',
  message: 'The name of a person comes from the identity provider.',
}
