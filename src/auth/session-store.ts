import { and, desc, eq, inArray, isNull, lt, or, type SQL, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import type { QueryRunner } from '#db/query-runner.ts'
import { appUser, groupMember } from '#db/schema/auth.ts'
import { loginSession } from '#db/schema/sessions.ts'
import type { PageRequest } from '#lib/page.ts'
import { holder, membershipOf, type StoredKey } from './key-store.ts'
import { lastUseGrainMs } from './key-use-store.ts'
import type { LoginMethod } from './principal.ts'

/** A session with its user. */
export type StoredSession = Pick<
  StoredKey,
  'userId' | 'subject' | 'name' | 'disabledAt' | 'membership'
> &
  Pick<
    typeof loginSession.$inferSelect,
    'createdAt' | 'lastUsedAt' | 'expiresAt' | 'renewAt' | 'userAgent'
  > & { readonly sessionId: string; readonly method: LoginMethod }

export type SessionRecord = Pick<
  typeof loginSession.$inferSelect,
  'id' | 'userId' | 'userAgent' | 'createdAt' | 'lastUsedAt' | 'expiresAt'
> & { readonly method: LoginMethod }

export type NewSession = Omit<typeof loginSession.$inferInsert, 'method' | 'renewingUntil'> & {
  readonly method: LoginMethod
}

/** What the identity provider gave for a session; the tokens are encrypted. */
export type SessionTokens = Pick<
  typeof loginSession.$inferSelect,
  'refreshToken' | 'renewAt' | 'userId'
>

/** Which sessions end: one of a user, those of a provider session, or every one of a user. */
export type SessionSelector = {
  readonly id?: string
  readonly hash?: Uint8Array
  readonly userId?: string
  readonly method?: LoginMethod
  readonly providerSession?: string
}

type Handle = Database['drizzle']

/** Sessions whose last use one statement writes. */
const touchedPerStatement = 1_000
/** Expired sessions that one login deletes. */
const purgedMax = 1_000

const sessionTokens = {
  refreshToken: loginSession.refreshToken,
  renewAt: loginSession.renewAt,
  userId: loginSession.userId,
}

const sessionRecord = {
  id: loginSession.id,
  userId: loginSession.userId,
  method: loginSession.method,
  userAgent: loginSession.userAgent,
  createdAt: loginSession.createdAt,
  lastUsedAt: loginSession.lastUsedAt,
  expiresAt: loginSession.expiresAt,
}

export function createSessionTable(drizzle: Handle, query: QueryRunner) {
  return {
    findSession: (hash: Uint8Array): Promise<StoredSession | undefined> =>
      query(async () => {
        const rows = await drizzle
          .select({
            ...holder,
            sessionId: loginSession.id,
            method: loginSession.method,
            userAgent: loginSession.userAgent,
            createdAt: loginSession.createdAt,
            lastUsedAt: loginSession.lastUsedAt,
            expiresAt: loginSession.expiresAt,
            renewAt: loginSession.renewAt,
          })
          .from(loginSession)
          .innerJoin(appUser, eq(appUser.id, loginSession.userId))
          .leftJoin(groupMember, eq(groupMember.userId, loginSession.userId))
          .where(eq(loginSession.hash, hash))
        const [first] = rows
        if (first === undefined) return undefined
        const { group: _, source: __, method, ...session } = first
        return { ...session, method: readMethod(method), membership: membershipOf(rows) }
      }),

    /**
     * Adds a session; deletes expired ones, and the oldest of a user who has more than `userMax`. Returns
     * whether there were such.
     */
    addSession: (session: NewSession, userMax: number): Promise<boolean> =>
      query(() => addSession(drizzle, session, userMax)),

    /** Newest first. */
    listSessions(userId: string, { limit, after }: PageRequest): Promise<SessionRecord[]> {
      return query(async () => {
        const rows = await drizzle
          .select(sessionRecord)
          .from(loginSession)
          .where(
            and(
              eq(loginSession.userId, userId),
              after === undefined ? undefined : lt(loginSession.id, after),
            ),
          )
          .orderBy(desc(loginSession.id))
          .limit(limit)
        return rows.map(({ method, ...row }) => ({ ...row, method: readMethod(method) }))
      })
    },

    /** Deletes sessions; returns their users, and their encrypted id tokens. */
    deleteSessions(
      selector: SessionSelector,
    ): Promise<{ id: string; userId: string; idToken: string | null }[]> {
      const { id, hash, userId, method, providerSession } = selector
      const conditions = [
        ...(id === undefined ? [] : [eq(loginSession.id, id)]),
        ...(hash === undefined ? [] : [eq(loginSession.hash, hash)]),
        ...(userId === undefined ? [] : [eq(loginSession.userId, userId)]),
        ...(method === undefined ? [] : [eq(loginSession.method, method)]),
        ...(providerSession === undefined
          ? []
          : [eq(loginSession.providerSession, providerSession)]),
      ]
      if (conditions.length === 0) throw new Error('no condition selects the sessions to delete')
      return query(() =>
        drizzle
          .delete(loginSession)
          .where(and(...conditions))
          .returning({
            id: loginSession.id,
            userId: loginSession.userId,
            idToken: loginSession.idToken,
          }),
      )
    },

    /** The tokens of a session, which no other replica refreshes before `until`. */
    async leaseTokens(
      id: string,
      now: Date,
      until: Date,
    ): Promise<SessionTokens | 'busy' | 'gone'> {
      const isFree = or(isNull(loginSession.renewingUntil), lt(loginSession.renewingUntil, now))
      const [leased] = await query(() =>
        drizzle
          .update(loginSession)
          .set({ renewingUntil: until })
          .where(and(eq(loginSession.id, id), isFree))
          .returning(sessionTokens),
      )
      if (leased !== undefined) return leased
      const [held] = await query(() =>
        drizzle.select(sessionTokens).from(loginSession).where(eq(loginSession.id, id)),
      )
      return held === undefined ? 'gone' : 'busy'
    },

    /** Ends the lease; with new tokens after a successful refresh. */
    async renewSession(
      id: string,
      tokens: Partial<
        Pick<typeof loginSession.$inferSelect, 'refreshToken' | 'idToken' | 'renewAt'>
      >,
    ): Promise<void> {
      await query(() =>
        drizzle
          .update(loginSession)
          .set({ ...tokens, renewingUntil: null })
          .where(eq(loginSession.id, id)),
      )
    },

    /** Runs in the background, without a deadline. */
    async markSessionsUsed(ids: readonly string[], usedAt: Date): Promise<void> {
      const usedBefore = new Date(usedAt.getTime() - lastUseGrainMs)
      // The same order on every replica prevents deadlocks.
      const ordered = [...ids].sort()
      for (let start = 0; start < ordered.length; start += touchedPerStatement) {
        const some = ordered.slice(start, start + touchedPerStatement)
        await drizzle
          .update(loginSession)
          .set({ lastUsedAt: usedAt })
          .where(and(inArray(loginSession.id, some), lt(loginSession.lastUsedAt, usedBefore)))
      }
    },
  }
}

async function addSession(drizzle: Handle, session: NewSession, userMax: number): Promise<boolean> {
  return drizzle.transaction(async (transaction) => {
    await deleteSome(
      transaction,
      lt(loginSession.expiresAt, session.createdAt),
      sql`limit ${purgedMax}`,
    )
    // Two concurrent logins may leave one more; the next login deletes it.
    const isOwn = eq(loginSession.userId, session.userId)
    const dropped = await deleteSome(
      transaction,
      isOwn,
      sql`order by ${desc(loginSession.id)} offset ${userMax - 1}`,
    )
    await transaction.insert(loginSession).values(session)
    return dropped > 0
  })
}

/** Rows that another transaction has locked are left to it. */
async function deleteSome(
  handle: Pick<Handle, 'delete' | 'select'>,
  condition: SQL,
  range: SQL,
): Promise<number> {
  const deleted = await handle
    .delete(loginSession)
    .where(
      sql`${loginSession.id} in (select id from login_session where ${condition} ${range} for update skip locked)`,
    )
    .returning({ id: loginSession.id })
  return deleted.length
}

/** A method of a later version is that of an identity provider. */
function readMethod(method: string): LoginMethod {
  return method === 'token' || method === 'code' ? method : 'oidc'
}
