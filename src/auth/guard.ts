import { AppError } from '#lib/errors.ts'
import type { Auth } from './auth.ts'
import { basePermission, type Permission } from './permissions.ts'
import type { Principal } from './principal.ts'

/**
 * The principal of a request with a permission; throws an `AppError` of status 401 or 403. Long-lived
 * connections are authorised again for each operation.
 */
export async function authorize(
  auth: Pick<Auth, 'authenticate'>,
  request: Request,
  permission: Permission,
): Promise<Principal> {
  const principal = await auth.authenticate(request)
  requirePermission(principal, permission)
  return principal
}

/**
 * Authorises an open connection every `periodMs`, until the returned function is called or the
 * credential is refused. An error that says nothing about the credential is ignored.
 */
export function watchAuthorization(
  authorizeAgain: () => Promise<unknown>,
  periodMs: number,
  onRefused: (error: AppError) => void,
): () => void {
  const check = async () => {
    try {
      await authorizeAgain()
    } catch (error) {
      if (!(error instanceof AppError) || (error.status !== 401 && error.status !== 403)) return
      clearInterval(timer)
      onRefused(error)
    }
  }
  const timer = setInterval(() => void check(), periodMs)
  return () => clearInterval(timer)
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
