import type { Peers } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { Auth } from './auth.ts'
import { basePermission, type Permission } from './permissions.ts'
import type { Principal } from './principal.ts'
import type { Scope } from './scopes.ts'
import type { Watcher } from './watchers.ts'

/** What an endpoint requires: a permission of the user, and a scope of an API key, null for none. */
export type Access = { readonly permission: Permission; readonly scope: Scope | null }

/**
 * The principal of a request with access; a promise of it, unless its credential was verified before.
 * Throws or rejects with an `AppError` of status 401 or 403. Long-lived connections are authorised again
 * for each operation.
 */
export function authorize(
  auth: Pick<Auth, 'authenticate'>,
  request: Request,
  access: Access,
  /** The server of the request; without it, keys with an address list are refused. */
  peers: Peers | null,
): Principal | Promise<Principal> {
  const principal = auth.authenticate(request, peers)
  return principal instanceof Promise
    ? principal.then((verified) => withAccess(verified, access))
    : withAccess(principal, access)
}

function withAccess(principal: Principal, access: Access): Principal {
  requireAccess(principal, access)
  return principal
}

/** Throws `permission_denied`. */
export function requireAccess(
  principal: Pick<Principal, 'credential' | 'permissions'>,
  { permission, scope }: Access,
): void {
  requireScope(principal, scope)
  requirePermission(principal, permission)
}

function requireScope({ credential }: Pick<Principal, 'credential'>, scope: Scope | null): void {
  if (scope === null || credential.kind === 'jwt') return
  if (credential.scopes === null || credential.scopes.includes(scope)) return
  throw new AppError('permission_denied', `This API key lacks the scope ${scope}.`)
}

/**
 * Authorises an open connection after each change that may concern it, and every `periodMs` because
 * credentials expire and notifications can be lost. It ends when the returned function is called or the
 * credential is refused.
 */
export function watchAuthorization(
  { watch }: Pick<Auth, 'watch'>,
  connection: {
    readonly holder: Watcher['holder']
    readonly authorizeAgain: () => Promise<unknown>
    readonly periodMs: number
    readonly onRefused: (error: AppError) => void
  },
): () => void {
  const { holder, authorizeAgain, periodMs, onRefused } = connection
  let isOver = false
  const end = () => {
    isOver = true
    clearInterval(timer)
    unwatch()
  }
  const check = async () => {
    try {
      await authorizeAgain()
    } catch (error) {
      if (isOver || !isRefusal(error)) return
      end()
      onRefused(error)
    }
  }
  const timer = setInterval(() => void check(), periodMs)
  const unwatch = watch({ holder, check })
  return end
}

/** Whether the credential was refused; any other error says nothing about it. */
export function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && (error.status === 401 || error.status === 403)
}

/** Throws `permission_denied`. Every permission includes the base permission. */
export function requirePermission(
  { permissions }: Pick<Principal, 'permissions'>,
  permission: Permission,
): void {
  const missing = permissions.has(basePermission) ? permission : basePermission
  if (permissions.has(missing)) return
  throw new AppError('permission_denied', `Missing permission: ${missing}.`)
}
