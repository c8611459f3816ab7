import type { Clock } from '#clock.ts'
import type { Config } from '#config/schema.ts'
import { assert, assertNever } from '#lib/assert.ts'
import type { Log } from '#telemetry/log.ts'
import { type Credential, readCredential, readToken, takesBearerKeys } from './credentials.ts'
import { createGroupPermissions, type GroupPermissions } from './groups.ts'
import { createKeyPrincipals, type KeyPrincipals } from './key-principals.ts'
import { createKeyRing, type KeyRing } from './key-ring.ts'
import { shippedGroups } from './permissions.ts'
import type { Principal } from './principal.ts'
import { type AuthDatabase, type AuthStore, type Change, createAuthStore } from './store.ts'
import { createTokenPrincipals } from './token-principals.ts'
import { createTokenVerifier } from './tokens.ts'

/** Tells who is calling, and keeps the API keys of the users. */
export type Auth = {
  /** The caller of a request; throws an `AppError` of status 401, or 503 when nobody can tell. */
  authenticate(request: Request): Promise<Principal>
  /** The bearer of a bare token, as a WebSocket brings it: a JWT or an API key. */
  authenticateToken(token: string): Promise<Principal>
  readonly keyRing: KeyRing
  close(): Promise<void>
}

export type AuthDeps = {
  config: Pick<Config, 'jwt' | 'apiKeys' | 'groups' | 'platformVersion'>
  database: AuthDatabase
  log: Log
  clock: Clock
  fetch: typeof fetch
}

/** Starts what has a lifetime; one of `jwt.secret` and `jwt.jwksUrl` must be configured. */
export async function createAuth(deps: AuthDeps): Promise<Auth> {
  const { config, database, log } = deps
  const { now } = deps.clock
  assert(config.jwt.secret ?? config.jwt.jwksUrl, 'tokens can be verified')
  const store = createAuthStore(database)
  await store.seedGroups(shippedGroups, config.groups)
  const groups = await createGroupPermissions({ load: store.loadGroups, log })
  const { cacheMs, pepper } = config.apiKeys
  const keys = createKeyPrincipals({ store, groups, now, log, cacheMs, pepper })
  const apply = createChangeHandler({ groups, keys })
  await store.followChanges({
    onChange: apply,
    onGap() {
      keys.forget()
      void groups.reload()
    },
  })
  const announce = createAnnouncer({ store, apply, log })
  await announce({ what: 'groups', id: '' })
  const verifier = createTokenVerifier({ settings: config.jwt, now, fetch: deps.fetch, log })
  const tokens = createTokenPrincipals({
    verifier,
    store,
    groups,
    now,
    log,
    onGroupsChanged: (userId) => announce({ what: 'user', id: userId }),
  })
  const principalOf = (credential: Credential) =>
    credential.kind === 'jwt'
      ? tokens.authenticate(credential.token)
      : keys.authenticate(credential.key)
  const rules = { bearerKeys: takesBearerKeys(config.platformVersion) }
  return {
    authenticate: async (request) => principalOf(readCredential(request, rules)),
    authenticateToken: async (token) => principalOf(readToken(token)),
    keyRing: createKeyRing({
      store,
      now,
      pepper,
      onRevoked: (keyId) => announce({ what: 'key', id: keyId }),
    }),
    async close() {
      verifier.close()
      await keys.close()
    },
  }
}

type Caches = {
  groups: Pick<GroupPermissions, 'reload'>
  keys: Pick<KeyPrincipals, 'forget'>
}

/** Drops what is no longer so. */
function createChangeHandler({ groups, keys }: Caches) {
  return ({ what, id }: Change): void => {
    switch (what) {
      case 'key':
        keys.forget({ keyId: id })
        return
      case 'user':
        keys.forget({ userId: id })
        return
      case 'groups':
        void groups.reload()
        return
      default:
        assertNever(what)
    }
  }
}

/** Tells this process at once, and the others; if they cannot be told, their caches run out. */
function createAnnouncer(options: {
  store: Pick<AuthStore, 'announce'>
  apply: (change: Change) => void
  log: Pick<Log, 'error'>
}) {
  return async (change: Change): Promise<void> => {
    options.apply(change)
    try {
      await options.store.announce(change)
    } catch (error) {
      options.log.error('A change of keys or groups could not be announced.', { change, error })
    }
  }
}
