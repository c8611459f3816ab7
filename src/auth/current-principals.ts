import { AppError } from '#lib/errors.ts'
import type { GroupRights } from './groups.ts'
import { bearerOf, requireValid, rightsOf } from './key-principals.ts'
import { type Principal, userDisabled } from './principal.ts'
import type { AuthStore } from './store.ts'

/** The user of a request, and its API key if it had one. */
export type Holder = { readonly userId: string; readonly keyId: string | null }

/**
 * The principal of work that runs later than its request, with the rights of this moment: undefined for
 * a user who is not recorded. Throws an `AppError` of status 401 if the key or the user was revoked,
 * disabled or has expired since; the expiry of a token does not end what it started.
 */
export function createCurrentPrincipals(options: {
  store: Pick<AuthStore, 'findKeyById' | 'findUser'>
  groups: Pick<GroupRights, 'of'>
  now: () => Date
}) {
  const { store, groups, now } = options
  return async ({ userId, keyId }: Holder): Promise<Principal | undefined> => {
    if (keyId !== null) {
      const key = await store.findKeyById(keyId)
      if (key === undefined) throw new AppError('invalid_api_key', 'This API key is not valid.')
      requireValid(key, now())
      return { ...bearerOf(key), ...rightsOf(key.scopes, groups.of(key.membership)) }
    }
    const user = await store.findUser(userId)
    if (user === undefined) return undefined
    if (user.disabledAt !== null) throw userDisabled('invalid_token')
    const { subject, name, membership } = user
    return { userId, subject, name, credential: { kind: 'jwt' }, ...groups.of(membership) }
  }
}
