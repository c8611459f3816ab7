import { type SQL, sql } from 'drizzle-orm'
import type { Actor, AuditEntry } from '#audit/audit.ts'
import type { Audit } from '#audit/store.ts'
import type { Auth, Changes } from '#auth/auth.ts'
import { basePermission, groupsPermission, type Permission } from '#auth/permissions.ts'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { AppError } from '#lib/errors.ts'

/** What the stores of the directory share. */
export type DirectoryDeps = {
  readonly database: Database
  readonly makeChange: MakeChange
  readonly now: () => Date
}

/** The transaction of a change, with its audit entries and notifications. */
type Changing = {
  readonly transaction: Transaction
  record(
    action: string,
    resource: AuditEntry['resource'],
    changes: Partial<AuditEntry['changes']>,
  ): Promise<void>
  /** Invalidates the caches of every process after the commit. */
  notify(change: Change): Promise<void>
}

type Change = Parameters<Changes['apply']>[0]

/**
 * Changes users and groups under one lock. Throws `conflict` with the code `last_admin_group` if no
 * user could manage groups afterwards, and the errors of `work`.
 */
export type MakeChange = <T>(actor: Actor, work: (changing: Changing) => Promise<T>) => Promise<T>

export function createChangeMaker(deps: {
  database: Database
  auth: Auth
  audit: Audit
}): MakeChange {
  const { database, auth, audit } = deps
  const query = createQueryRunner()
  return async (actor, work) => {
    const changes: Change[] = []
    const result = await query(() =>
      database.drizzle.transaction(async (transaction) => {
        await transaction.execute(
          sql`select pg_advisory_xact_lock(hashtextextended('directory', 0))`,
        )
        const hadAdmin = await hasAdmin(transaction)
        const done = await work({
          transaction,
          record(action, resource, fields) {
            const changes = { before: null, after: null, ...fields }
            return audit.record({ actor, action, resource, changes }, transaction)
          },
          async notify(change) {
            changes.push(change)
            await auth.changes.notifyOnCommit(transaction, change)
          },
        })
        if (hadAdmin && !(await hasAdmin(transaction))) throw conflict(lastAdminError)
        return done
      }),
    )
    for (const change of changes) await auth.changes.apply(change)
    return result
  }
}

/** Whether an enabled person may manage groups. */
async function hasAdmin(transaction: Transaction): Promise<boolean> {
  const [row] = await transaction.execute<{ found: boolean }>(sql`
    select exists (
      select 1 from app_user
      where kind = 'user' and disabled_at is null
        and ${isGranted(groupsPermission)} and ${isGranted(basePermission)}
    ) as found`)
  return row?.found === true
}

function isGranted(permission: Permission): SQL {
  return sql`exists (
    select 1 from user_group held
    join app_group granting on granting.name = held.group_name
    where held.user_id = app_user.id and ${permission}::text = any (granting.permissions))`
}

export const lastAdminError = {
  code: 'last_admin_group',
  message: 'No user could manage groups after this change.',
}

export function conflict(
  { code, message }: { code: string; message: string },
  param?: string,
): AppError {
  return new AppError('conflict', message, { code, ...(param === undefined ? {} : { param }) })
}
