import type { Auth } from '#auth/auth.ts'
import { cookieName, hashSecret, readCookie, renderCookie } from '#auth/session-cookie.ts'
import type { NewLogin } from '#auth/sessions.ts'
import type { Config } from '#config/schema.ts'
import type { Peers } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import { loopbackHost } from './config.ts'

type BrowserDeps = {
  auth: Pick<Auth, 'sessions' | 'addressOf'>
  now: () => Date
}

/** The request that logs in. */
type Login = {
  readonly request: Request
  readonly origin: string
  readonly peers: Peers | null
  readonly requestId: string
}

/** Begins the session of a browser and ends the one that it had; returns its secret, and its cookie. */
export async function beginSession(
  { auth, now }: BrowserDeps,
  { request, origin, ...from }: Login,
  login: Omit<NewLogin, 'userAgent' | 'from'>,
  former = formerSession(request, origin),
): Promise<{ secret: string; cookie: string }> {
  const userAgent = request.headers.get('user-agent') ?? ''
  // A new secret with every login: one that was planted before it gives no access afterwards.
  const clientAddress = auth.addressOf(request, from.peers)
  const { requestId } = from
  const secret = await auth.sessions.create({
    ...login,
    userAgent,
    from: { requestId, clientAddress },
  })
  if (former !== null) {
    await auth.sessions.end({ hash: former }, { actor: null, reason: 'replaced' })
  }
  const maxAgeS = Math.floor((login.expiresAt.getTime() - now().getTime()) / 1000)
  return {
    secret,
    cookie: renderCookie('session', secret, { origin, maxAgeS, sameSite: 'Strict' }),
  }
}

/** The hash of the session that a browser has already; null for none. */
export function formerSession(request: Request, origin: string): Buffer | null {
  const secret = readCookie(request, cookieName('session', origin))
  return secret ? hashSecret(secret) : null
}

/** The cookie that deletes that of the session. */
export function endedCookie(origin: string): string {
  return renderCookie('session', '', { origin, maxAgeS: 0, sameSite: 'Strict' })
}

/**
 * The origin of the gateway for the browser. Over plain http a session could be read by everybody on
 * the way, so it needs `login.public_url`, except on this machine.
 */
export function requireSafeOrigin(
  { auth, config }: { auth: Pick<Auth, 'originOf'>; config: Pick<Config, 'login'> },
  request: Request,
  peers: Peers | null,
): string {
  const origin = auth.originOf(request, peers)
  const { protocol, hostname } = new URL(origin)
  const isSafe =
    protocol === 'https:' || config.login.publicUrl !== undefined || loopbackHost.test(hostname)
  if (!isSafe) throw new AppError('permission_denied', insecure, { code: 'https_required' })
  return origin
}

export const insecure =
  'A login needs https. Behind a proxy that ends TLS, set trusted_proxies, or login.public_url (SLUICE_PUBLIC_URL) to the https address.'
