import type { Auth } from '#auth/auth.ts'
import { userIdOf } from '#auth/principal.ts'
import type { SessionTokens } from '#auth/session-store.ts'
import { AppError } from '#lib/errors.ts'
import { createSingleFlight, setBounded } from '#lib/single-flight.ts'
import type { Sealer } from '#sealing/sealer.ts'
import type { Log } from '#telemetry/log.ts'
import type { OidcClient, ProviderLogin } from './oidc-client.ts'

/** Longer than the requests of one refresh. */
const leaseMs = 30_000
/** How often a session looks whether another replica has refreshed its tokens. */
const pollMs = 200
/** Before the tokens expire, for requests that are on their way. */
const earlyMs = 10_000
const soonestMs = 5_000
/** After a failed refresh. */
const retryMs = 15_000
/** How long sessions go on while the provider is unreachable. */
const graceMs = 600_000
const failuresMax = 10_000

/** When the tokens of a session that live until then are refreshed. */
export function renewalOf(now: Date, expiresAtS: number): Date {
  return new Date(Math.max(expiresAtS * 1000 - earlyMs, now.getTime() + soonestMs))
}

/** Tokens as the database keeps them: they open for one session only. */
export function sealTokens(
  sealer: Sealer,
  sessionId: string,
  { refreshToken, idToken }: Pick<ProviderLogin, 'refreshToken' | 'idToken'>,
) {
  const seal = (token: string | null) => token && sealer.seal('login', sessionId, token)
  return { refreshToken: seal(refreshToken), idToken: seal(idToken) }
}

/**
 * Refreshes the tokens behind a session, on one replica at a time: a provider may take the second use
 * of a refresh token for theft. Throws `invalid_session` if the provider has ended the session.
 */
export function createRenewal(deps: {
  auth: Pick<Auth, 'sessions'>
  oidc: Pick<OidcClient, 'refresh'>
  sealer: Sealer
  now: () => Date
  log: Pick<Log, 'info' | 'warn'>
}): (sessionId: string) => Promise<void> {
  const { auth, oidc, sealer, now, log } = deps
  const once = createSingleFlight<void>()
  /** When the refresh of a session failed first. */
  const failingSince = new Map<string, number>()

  async function end(id: string, reason: string): Promise<never> {
    log.info('session ended', { reason })
    await auth.sessions.end({ id }, { actor: null, reason: 'provider' })
    throw sessionOver()
  }

  async function keepOn(id: string, tokens: SessionTokens, error: unknown): Promise<void> {
    const since = failingSince.get(id) ?? now().getTime()
    setBounded(failingSince, id, since, failuresMax)
    log.warn('token refresh failed', { error })
    const isInGrace = now().getTime() - since < graceMs
    const renewAt = isInGrace ? new Date(now().getTime() + retryMs) : tokens.renewAt
    await auth.sessions.renew({ id, userId: tokens.userId }, { renewAt })
    if (isInGrace) return
    throw new AppError('service_unavailable', 'The identity provider is unreachable; retry.', {
      retryAfterS: Math.ceil(retryMs / 1000),
      cause: error,
    })
  }

  async function refresh(id: string, tokens: SessionTokens): Promise<void> {
    const refreshToken = tokens.refreshToken && sealer.open('login', id, tokens.refreshToken)
    if (!refreshToken) return end(id, 'no refresh token')
    let login: ProviderLogin | null
    try {
      login = await oidc.refresh(refreshToken)
    } catch (error) {
      return keepOn(id, tokens, error)
    }
    if (login === null) return end(id, 'the identity provider ended it')
    if (userIdOf(login.claims.subject) !== tokens.userId) return end(id, 'another subject')
    failingSince.delete(id)
    await auth.sessions.recordUser(login.claims)
    // A provider may keep the refresh token, and need not send another id token.
    const sealed = sealTokens(sealer, id, login)
    await auth.sessions.renew(
      { id, userId: tokens.userId },
      {
        renewAt: renewalOf(now(), login.expiresAtS),
        ...(sealed.refreshToken === null ? {} : { refreshToken: sealed.refreshToken }),
        ...(sealed.idToken === null ? {} : { idToken: sealed.idToken }),
      },
    )
  }

  async function renew(id: string): Promise<void> {
    const waitUntil = performance.now() + leaseMs
    do {
      const lease = await auth.sessions.lease(id, now(), new Date(now().getTime() + leaseMs))
      if (lease === 'gone') throw sessionOver()
      if (lease !== 'busy') {
        const isDone = lease.renewAt === null || lease.renewAt > now()
        return isDone ? auth.sessions.renew({ id, userId: lease.userId }, {}) : refresh(id, lease)
      }
      await Bun.sleep(pollMs)
    } while (performance.now() < waitUntil)
    throw new AppError('service_unavailable', 'The session is being renewed; retry.', {
      retryAfterS: 1,
    })
  }

  return (sessionId) => once(sessionId, () => renew(sessionId))
}

function sessionOver(): AppError {
  return new AppError('invalid_session', 'The session has ended; log in again.')
}
