import type { Auth } from '#auth/auth.ts'
import type { Principal } from '#auth/principal.ts'
import type { Peers } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { OidcClient } from './oidc-client.ts'

export function sessionIdOf({ credential }: Principal): string | null {
  return credential.kind === 'jwt' ? (credential.session?.id ?? null) : null
}

const credentialHeaders = ['authorization', 'x-api-key', 'cookie']

/** Null without a valid credential. */
export async function principalOf(
  auth: Pick<Auth, 'authenticate'>,
  request: Request,
  peers: Peers | null,
): Promise<Principal | null> {
  if (!credentialHeaders.some((name) => request.headers.has(name))) return null
  try {
    return await auth.authenticate(request, peers)
  } catch (error) {
    if (error instanceof AppError && error.status === 401) return null
    throw error
  }
}

export type LogoutDeps = {
  auth: Pick<Auth, 'authenticate' | 'sessions' | 'originOf' | 'addressOf'>
  /** Null without an identity provider for logins. */
  oidc: Pick<OidcClient, 'logoutUrl'> | null
}

type Logout = {
  readonly request: Request
  readonly peers: Peers | null
  readonly requestId: string
}

/** Ends the session of a request; returns where the browser logs out at the identity provider. */
export async function logOut(
  { auth, oidc }: LogoutDeps,
  { request, peers, requestId }: Logout,
): Promise<string | null> {
  const principal = await principalOf(auth, request, peers)
  const id = principal && sessionIdOf(principal)
  if (!id) return null
  const clientAddress = auth.addressOf(request, peers)
  const actor = { userId: principal.userId, keyId: null, requestId, clientAddress }
  const [ended] = await auth.sessions.end({ id }, { actor, reason: 'logout' })
  if (ended === undefined || oidc === null) return null
  try {
    return await oidc.logoutUrl(ended, auth.originOf(request, peers))
  } catch {
    // The session has ended here; the provider is unreachable.
    return null
  }
}
