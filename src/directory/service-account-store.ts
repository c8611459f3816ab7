import { and, eq } from 'drizzle-orm'
import type { Actor } from '#audit/audit.ts'
import { serviceSubjectOf } from '#auth/principal.ts'
import { appGroup, appUser, groupMember } from '#db/schema/auth.ts'
import { AppError } from '#lib/errors.ts'
import type { DirectoryDeps } from './change-store.ts'
import { findDetails, type UserDetails } from './user-store.ts'

const serviceAccountsMax = 10_000

export type ServiceAccounts = ReturnType<typeof createServiceAccounts>

/** Users that are programs. */
export function createServiceAccounts({ makeChange, now }: DirectoryDeps) {
  return {
    /** Throws `unprocessable` with the code `group_not_found` or `too_many_service_accounts`. */
    create: (
      actor: Actor,
      { name, groups }: { name: string; groups: readonly string[] },
    ): Promise<UserDetails> =>
      makeChange(actor, async ({ transaction, record }) => {
        const known = await transaction.$count(appUser, eq(appUser.kind, 'service'))
        if (known >= serviceAccountsMax) throw tooManyServiceAccounts()
        for (const [index, group] of groups.entries()) {
          const isKnown = (await transaction.$count(appGroup, eq(appGroup.name, group))) > 0
          if (!isKnown) throw unknownGroup(index)
        }
        const id = Bun.randomUUIDv7()
        const createdAt = now()
        const createdBy = actor.userId
        await transaction.insert(appUser).values({
          id,
          subject: serviceSubjectOf(id),
          name,
          kind: 'service',
          createdBy,
          createdAt,
        })
        if (groups.length > 0) {
          await transaction.insert(groupMember).values(
            groups.map((groupName) => ({
              userId: id,
              groupName,
              source: 'manual' as const,
              grantedBy: createdBy,
              grantedAt: createdAt,
            })),
          )
        }
        const resource = { type: 'service_account', id }
        await record('service_account.create', resource, { after: { name, groups } })
        return findDetails(transaction, id)
      }),

    /** Its keys stop working on every replica within a second. Ids of persons are `not_found` too. */
    remove: (actor: Actor, id: string): Promise<void> =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        const isAccount = and(eq(appUser.id, id), eq(appUser.kind, 'service'))
        if ((await transaction.$count(appUser, isAccount)) === 0) throw serviceAccountNotFound(id)
        const { name, groups } = await findDetails(transaction, id)
        // With its keys and memberships.
        await transaction.delete(appUser).where(isAccount)
        await record(
          'service_account.delete',
          { type: 'service_account', id },
          { before: { name, groups: groups.map((group) => group.name) } },
        )
        await notify({ what: 'user', id })
      }),
  }
}

function tooManyServiceAccounts(): AppError {
  return new AppError(
    'unprocessable',
    `There are ${serviceAccountsMax} service accounts, which is the limit; delete one first.`,
    { code: 'too_many_service_accounts' },
  )
}

export const unknownGroupError = {
  code: 'group_not_found',
  message: 'There is no group of this name.',
}

function unknownGroup(index: number): AppError {
  const { code, message } = unknownGroupError
  return new AppError('unprocessable', message, { code, param: `groups[${index}]` })
}

export function serviceAccountNotFound(id: string): AppError {
  const sentence = `There is no service account with the id "${id}".`
  return new AppError('not_found', sentence, { param: 'id' })
}
