import { and, count, eq } from 'drizzle-orm'
import { appUser, groupMember } from '#db/schema/auth.ts'
import type { Transaction } from '#directory/change-store.ts'

export type NewServiceAccount = {
  readonly id: string
  readonly subject: string
  readonly name: string
  readonly groups: readonly string[]
  readonly createdBy: string
  readonly createdAt: Date
}

export async function countServiceAccounts(transaction: Transaction): Promise<number> {
  const [row] = await transaction
    .select({ accounts: count() })
    .from(appUser)
    .where(eq(appUser.kind, 'service'))
  return row?.accounts ?? 0
}

export async function addServiceAccount(
  transaction: Transaction,
  { groups, ...account }: NewServiceAccount,
): Promise<void> {
  const { id: userId, createdBy: grantedBy, createdAt: grantedAt } = account
  await transaction.insert(appUser).values({ ...account, kind: 'service' })
  if (groups.length === 0) return
  await transaction.insert(groupMember).values(
    groups.map((groupName) => ({
      userId,
      groupName,
      source: 'manual' as const,
      grantedBy,
      grantedAt,
    })),
  )
}

/** With its keys and memberships. Null if there is no such account. */
export async function dropServiceAccount(
  transaction: Transaction,
  id: string,
): Promise<{ name: string | null } | null> {
  const [dropped] = await transaction
    .delete(appUser)
    .where(and(eq(appUser.id, id), eq(appUser.kind, 'service')))
    .returning({ name: appUser.name })
  return dropped ?? null
}
