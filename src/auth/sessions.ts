import type { Actor } from '#audit/audit.ts'
import type { Audit } from '#audit/store.ts'
import { AppError } from '#lib/errors.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import { type LoginMethod, userDisabled, userIdOf } from './principal.ts'
import { createSessionSecret, hashSecret } from './session-cookie.ts'
import type { SessionRecord, SessionSelector } from './session-store.ts'
import type { AuthStore } from './store.ts'
import type { TokenClaims } from './tokens.ts'

/** Of a user; a further login ends the oldest one. */
const sessionsMax = 100
const userAgentCharsMax = 256

export type NewLogin = {
  readonly claims: TokenClaims
  readonly method: LoginMethod
  readonly userAgent: string
  readonly expiresAt: Date
  /** The request that logs in, for the audit log. */
  readonly from: Pick<Actor, 'requestId' | 'clientAddress'>
  /** Of an identity provider. */
  readonly provider?: {
    readonly renewAt: Date | null
    readonly session: string | null
    /** Encrypts the tokens for this session. */
    readonly seal: (sessionId: string) => {
      readonly refreshToken: string | null
      readonly idToken: string | null
    }
  }
}

/** Why a session ends, and by whom; null: by the gateway or the identity provider. */
export type SessionEnd = {
  readonly actor: Actor | null
  readonly reason: 'logout' | 'revoked' | 'replaced' | 'provider'
}

/** The sessions of browsers. Each login and each end is in the audit log, except an expiry. */
export function createSessions(options: {
  store: Pick<
    AuthStore,
    'recordUser' | 'addSession' | 'listSessions' | 'deleteSessions' | 'leaseTokens' | 'renewSession'
  >
  now: () => Date
  audit: Pick<Audit, 'record'>
  /** Called after sessions of a user have ended or were renewed. */
  onChanged: (userId: string) => Promise<void>
  onIdpGroupsChanged: (userId: string) => Promise<void>
}) {
  const { store, now, audit, onChanged, onIdpGroupsChanged } = options

  /** Records the user of a login as their token would; throws `user_disabled`. */
  async function recordUser(claims: TokenClaims): Promise<string> {
    const { subject, name, groups, issuedAtS } = claims
    const userId = userIdOf(subject)
    const user = { userId, subject, name, groups, issuedAtS, seenAt: now() }
    const { isChanged, isDisabled } = await store.recordUser(user)
    if (isDisabled) throw userDisabled('invalid_session')
    if (isChanged) await onIdpGroupsChanged(userId)
    return userId
  }

  return {
    recordUser,

    /** Returns the value of the cookie, which is not stored. */
    async create(login: NewLogin): Promise<string> {
      const { claims, method, expiresAt, provider, from } = login
      const userAgent = printable(login.userAgent).slice(0, userAgentCharsMax)
      const userId = await recordUser(claims)
      const id = Bun.randomUUIDv7()
      const secret = createSessionSecret()
      const createdAt = now()
      const hasEnded = await store.addSession(
        {
          id,
          userId,
          hash: hashSecret(secret),
          method,
          userAgent,
          createdAt,
          lastUsedAt: createdAt,
          expiresAt,
          renewAt: provider?.renewAt ?? null,
          providerSession: provider?.session ?? null,
          ...provider?.seal(id),
        },
        sessionsMax,
      )
      if (hasEnded) await onChanged(userId)
      const after = { method, user_agent: userAgent, expires_at: expiresAt.toISOString() }
      await audit.record({
        actor: { userId, keyId: null, ...from },
        action: 'session.create',
        resource: { type: 'session', id },
        changes: { before: null, after },
      })
      return secret
    },

    /** Newest first. */
    async list(userId: string, { limit, after }: PageRequest): Promise<Page<SessionRecord>> {
      return pageOf(await store.listSessions(userId, { limit: limit + 1, after }), limit)
    },

    /** Ends sessions on every replica; returns what their users had at the identity provider. */
    async end(selector: SessionSelector, { actor, reason }: SessionEnd) {
      const ended = await store.deleteSessions(selector)
      const users = new Set(ended.map(({ userId }) => userId))
      for (const userId of users) await onChanged(userId)
      for (const { id, userId } of ended) {
        await audit.record({
          actor,
          action: 'session.end',
          resource: { type: 'session', id },
          changes: { before: { user_id: userId }, after: { reason } },
        })
      }
      return ended
    },

    lease: store.leaseTokens,

    /** Stores new tokens, or ends the lease without any. */
    async renew(
      session: { readonly id: string; readonly userId: string },
      tokens: Parameters<typeof store.renewSession>[1],
    ): Promise<void> {
      await store.renewSession(session.id, tokens)
      await onChanged(session.userId)
    },
  }
}

/** PostgreSQL text cannot contain NUL, and a list should show one line. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ')
}

/** The expiry of a session, within that of a token where it has one. */
export function expiryOf(now: Date, lifetimeS: number, tokenExpiresAtS?: number): Date {
  const lifetimeEnd = now.getTime() + lifetimeS * 1000
  const tokenEnd = tokenExpiresAtS === undefined ? lifetimeEnd : tokenExpiresAtS * 1000
  const endsAt = Math.min(lifetimeEnd, tokenEnd)
  if (endsAt <= now.getTime()) throw new AppError('invalid_token', 'The token has expired.')
  return new Date(endsAt)
}
