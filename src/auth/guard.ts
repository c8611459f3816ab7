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
 * credential is refused.
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
      if (!isRefusal(error)) return
      clearInterval(timer)
      onRefused(error)
    }
  }
  const timer = setInterval(() => void check(), periodMs)
  return () => clearInterval(timer)
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
