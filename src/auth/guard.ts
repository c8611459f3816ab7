import { type DocumentDecoration, Elysia } from 'elysia'
import { AppError } from '#lib/errors.ts'
import type { Auth } from './auth.ts'
import { basePermission, type Permission } from './permissions.ts'
import type { Principal } from './principal.ts'

/**
 * The macro `requires`: a route that names a permission is closed to everybody who lacks it, and to
 * everybody who lacks the base permission; its handler finds the caller as `principal`. It holds
 * for WebSocket routes too. The permission stands in the route's `detail` as `x-permission`.
 *
 * Callers are checked before a query or a body is validated, but after Elysia has parsed a body:
 * a route that takes one sets `parse: 'none'` and reads it in its handler.
 */
export function guard(auth: Pick<Auth, 'authenticate'>) {
  const principals = new WeakMap<Request, Principal>()
  return new Elysia().macro({
    requires: (permission: Permission) => ({
      detail: told(permission),
      async transform({ request }) {
        principals.set(request, await admit(auth, request, permission))
      },
      resolve({ request }) {
        const principal = principals.get(request)
        // Unreachable while Elysia runs `transform` first; without it, the route stays closed.
        if (principal === undefined) throw new Error('the guard did not run')
        return { principal }
      },
    }),
  })
}

/**
 * The caller of a request, who has a permission; throws an `AppError` of status 401 or 403. Who
 * keeps a connection asks again for each thing that is done over it.
 */
export async function admit(
  auth: Pick<Auth, 'authenticate'>,
  request: Request,
  permission: Permission,
): Promise<Principal> {
  const principal = await auth.authenticate(request)
  requirePermission(principal, permission)
  return principal
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

/** Whoever finds a key must not be able to make more of them. */
export function demandToken({ credential }: Principal): void {
  if (credential.kind === 'jwt') return
  throw new AppError('jwt_required', 'API keys are made with a token, not with an API key.')
}

function told(permission: Permission): DocumentDecoration & { 'x-permission': Permission } {
  return { 'x-permission': permission }
}
