import { and, count, eq, gt, isNull, lt, or, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { loginCode } from '#db/schema/sessions.ts'

export type DeviceLogin = Pick<
  typeof loginCode.$inferSelect,
  'status' | 'name' | 'userId' | 'createdAt' | 'expiresAt'
> & { readonly userCode: string }

type NewDeviceLogin = Pick<DeviceLogin, 'name' | 'createdAt' | 'expiresAt' | 'userCode'> & {
  readonly hash: Uint8Array
}

/** What a device finds when it asks for its key. */
export type PollOutcome =
  | { readonly kind: 'unknown' | 'expired' | 'pending' | 'too-soon' | 'denied' }
  /** The code is deleted: it works once. */
  | { readonly kind: 'approved'; readonly userId: string; readonly name: string }

export type CodeStore = ReturnType<typeof createCodeStore>

/** Codes that work once, by their hashes. */
export function createCodeStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const query = createQueryRunner()

  const device = {
    userCode: sql<string>`${loginCode.userCode}`,
    status: loginCode.status,
    name: loginCode.name,
    userId: loginCode.userId,
    createdAt: loginCode.createdAt,
    expiresAt: loginCode.expiresAt,
  }
  const isLive = (userCode: string, now: Date) =>
    and(
      eq(loginCode.kind, 'device'),
      eq(loginCode.userCode, userCode),
      gt(loginCode.expiresAt, now),
    )

  return {
    /** Replaces the codes of earlier starts. */
    async addStartCode(hash: Uint8Array, createdAt: Date, expiresAt: Date): Promise<void> {
      await drizzle.transaction(async (transaction) => {
        await transaction.delete(loginCode).where(eq(loginCode.kind, 'start'))
        await transaction.insert(loginCode).values({ hash, kind: 'start', createdAt, expiresAt })
      })
    },

    /** Whether there was such a code; it is deleted. */
    async takeStartCode(hash: Uint8Array, now: Date): Promise<boolean> {
      const taken = await query(() =>
        drizzle
          .delete(loginCode)
          .where(and(eq(loginCode.hash, hash), eq(loginCode.kind, 'start')))
          .returning({ expiresAt: loginCode.expiresAt }),
      )
      return taken.some(({ expiresAt }) => expiresAt > now)
    },

    /** False if `liveMax` logins wait already. Deletes expired ones. */
    addDevice(login: NewDeviceLogin, liveMax: number): Promise<boolean> {
      return query(() =>
        drizzle.transaction(async (transaction) => {
          await transaction
            .delete(loginCode)
            .where(and(eq(loginCode.kind, 'device'), lt(loginCode.expiresAt, login.createdAt)))
          const [live] = await transaction
            .select({ count: count() })
            .from(loginCode)
            .where(eq(loginCode.kind, 'device'))
          if (live !== undefined && live.count >= liveMax) return false
          await transaction.insert(loginCode).values({ ...login, kind: 'device' })
          return true
        }),
      )
    },

    async findDevice(userCode: string, now: Date): Promise<DeviceLogin | undefined> {
      const [row] = await query(() =>
        drizzle.select(device).from(loginCode).where(isLive(userCode, now)),
      )
      return row
    },

    /** Decides a waiting login; undefined if there is none. */
    async decideDevice(
      userCode: string,
      decision: { status: 'approved' | 'denied'; userId: string; now: Date },
    ): Promise<DeviceLogin | undefined> {
      const { status, userId, now } = decision
      const [row] = await query(() =>
        drizzle
          .update(loginCode)
          .set({ status, userId })
          .where(and(isLive(userCode, now), eq(loginCode.status, 'pending')))
          .returning(device),
      )
      return row
    },

    pollDevice: (hash: Uint8Array, now: Date, intervalMs: number): Promise<PollOutcome> =>
      query(() =>
        drizzle.transaction((transaction) => pollDevice(transaction, { hash, now, intervalMs })),
      ),
  }
}

async function pollDevice(
  transaction: Transaction,
  { hash, now, intervalMs }: { hash: Uint8Array; now: Date; intervalMs: number },
): Promise<PollOutcome> {
  const isThis = and(eq(loginCode.hash, hash), eq(loginCode.kind, 'device'))
  const [found] = await transaction.select().from(loginCode).where(isThis).for('update')
  if (found === undefined) return { kind: 'unknown' }
  const { status, userId, name, expiresAt } = found
  if (expiresAt <= now) return { kind: 'expired' }
  if (status === 'pending') {
    const polledBefore = new Date(now.getTime() - intervalMs)
    const mayPoll = or(isNull(loginCode.polledAt), lt(loginCode.polledAt, polledBefore))
    const inTime = await transaction
      .update(loginCode)
      .set({ polledAt: now })
      .where(and(isThis, mayPoll))
      .returning({ kind: loginCode.kind })
    return { kind: inTime.length > 0 ? 'pending' : 'too-soon' }
  }
  await transaction.delete(loginCode).where(isThis)
  if (status === 'denied' || userId === null) return { kind: 'denied' }
  return { kind: 'approved', userId, name }
}
