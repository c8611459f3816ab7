import { type SQL, sql } from 'drizzle-orm'
import type { Actor, Audit, AuditEntry } from '#audit/audit.ts'
import type { Auth, Changes } from '#auth/auth.ts'
import { basePermission, groupsPermission, type Permission } from '#auth/permissions.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { AppError } from '#lib/errors.ts'

export type DirectoryDatabase = Pick<Database, 'drizzle'>

export type Transaction = Parameters<Parameters<Database['drizzle']['transaction']>[0]>[0]

/** The transaction of a change, with its audit entries and notifications. */
export type Changing = {
  readonly transaction: Transaction
  record(entry: Omit<AuditEntry, 'actor'>): Promise<void>
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
  database: DirectoryDatabase
  auth: Pick<Auth, 'changes'>
  audit: Pick<Audit, 'record'>
}): MakeChange {
  const { audit } = deps
  const { drizzle } = deps.database
  const { notifyOnCommit, apply } = deps.auth.changes
  const query = createQueryRunner()
  return async (actor, work) => {
    const changes: Change[] = []
    const result = await query(() =>
      drizzle.transaction(async (transaction) => {
        await transaction.execute(
          sql`select pg_advisory_xact_lock(hashtextextended('directory', 0))`,
        )
        const hadAdmin = await hasAdmin(transaction)
        const done = await work({
          transaction,
          record: (entry) => audit.record({ ...entry, actor }, transaction),
          async notify(change) {
            changes.push(change)
            await notifyOnCommit(transaction, change)
          },
        })
        if (hadAdmin && !(await hasAdmin(transaction))) throw lastAdmin()
        return done
      }),
    )
    for (const change of changes) await apply(change)
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

function lastAdmin(): AppError {
  return new AppError('conflict', lastAdminError.message, { code: lastAdminError.code })
}
