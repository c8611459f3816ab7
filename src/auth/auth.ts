import type { Audit } from '#audit/audit.ts'
import type { Clock } from '#clock.ts'
import type { Config } from '#config/schema.ts'
import { assert, assertNever } from '#lib/assert.ts'
import type { Log } from '#telemetry/log.ts'
import { type Credential, readCredential, readToken, takesBearerKeys } from './credentials.ts'
import { createGroupRights, type GroupRights } from './groups.ts'
import { createKeyPrincipals, type KeyPrincipals } from './key-principals.ts'
import { createKeyRing, type KeyRing } from './key-ring.ts'
import { shippedGroups } from './permissions.ts'
import type { Principal } from './principal.ts'
import {
  type Announcing,
  type AuthDatabase,
  type AuthStore,
  type Change,
  createAuthStore,
} from './store.ts'
import { createTokenPrincipals, type TokenPrincipals } from './token-principals.ts'
import { createTokenVerifier } from './tokens.ts'

/** Tells who is calling, and keeps the API keys of the users. */
export type Auth = {
  /** The caller of a request; throws an `AppError` of status 401, or 503 when nobody can tell. */
  authenticate(request: Request): Promise<Principal>
  /** The bearer of a bare token, as a WebSocket brings it: a JWT or an API key. */
  authenticateToken(token: string): Promise<Principal>
  readonly keyRing: KeyRing
  readonly changes: Changes
  close(): Promise<void>
}

/** For whoever changes users and groups, which are kept in memory here and in other processes. */
export type Changes = {
  /** Tells every process once this transaction is committed. */
  announceOnCommit(transaction: Announcing, change: Change): Promise<void>
  /** Resolves when the change holds in this process; to be called after the commit. */
  apply(change: Change): Promise<void>
}

export type AuthDeps = {
  config: Pick<Config, 'jwt' | 'apiKeys' | 'groups' | 'platformVersion'>
  database: AuthDatabase
  audit: Pick<Audit, 'record'>
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
  const groups = await createGroupRights({ load: store.loadGroups, log })
  const { cacheMs, pepper } = config.apiKeys
  const keys = createKeyPrincipals({ store, groups, now, log, cacheMs, pepper })
  const verifier = createTokenVerifier({ settings: config.jwt, now, fetch: deps.fetch, log })
  const tokens = createTokenPrincipals({
    verifier,
    store,
    groups,
    now,
    log,
    onWordsChanged: (userId) => announce({ what: 'words', id: userId }),
  })
  const apply = createChangeHandler({ groups, keys, tokens })
  const announce = createAnnouncer({ store, apply, log })
  await store.followChanges({
    onChange: (change) => void apply(change),
    onGap: () => void apply({ what: 'all', id: '' }),
  })
  await announce({ what: 'groups', id: '' })
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
      audit: deps.audit,
      onRevoked: (keyId) => announce({ what: 'key', id: keyId }),
    }),
    changes: { announceOnCommit: store.announceOnCommit, apply },
    async close() {
      verifier.close()
      await keys.close()
    },
  }
}

type Caches = {
  groups: Pick<GroupRights, 'reload'>
  keys: Pick<KeyPrincipals, 'forget'>
  tokens: Pick<TokenPrincipals, 'forget'>
}

/** Drops what is no longer so. */
function createChangeHandler({ groups, keys, tokens }: Caches) {
  return async ({ what, id }: Change): Promise<void> => {
    switch (what) {
      case 'key':
        keys.forget({ keyId: id })
        return
      case 'words':
        keys.forget({ userId: id })
        return
      case 'user':
        keys.forget({ userId: id })
        tokens.forget({ userId: id })
        return
      case 'groups':
        return groups.reload()
      case 'all':
        keys.forget()
        tokens.forget()
        return groups.reload()
      default:
        assertNever(what)
    }
  }
}

/** Tells this process at once, and the others; if they cannot be told, their caches run out. */
function createAnnouncer(options: {
  store: Pick<AuthStore, 'announce'>
  apply: (change: Change) => Promise<void>
  log: Pick<Log, 'error'>
}) {
  return async (change: Change): Promise<void> => {
    await options.apply(change)
    try {
      await options.store.announce(change)
    } catch (error) {
      options.log.error('A change of keys or groups could not be announced.', { change, error })
    }
  }
}
