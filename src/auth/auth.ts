import type { Audit } from '#audit/store.ts'
import type { Config } from '#config/schema.ts'
import { assert, assertNever } from '#lib/assert.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { type ApiKeys, createApiKeys } from './api-keys.ts'
import { type Credential, readCredential, readToken, takesBearerKeys } from './credentials.ts'
import { createGroupRights, type GroupRights } from './groups.ts'
import { createKeyPrincipals, type KeyPrincipals } from './key-principals.ts'
import { shippedGroups } from './permissions.ts'
import type { Principal } from './principal.ts'
import {
  type AuthDatabase,
  type AuthStore,
  type Change,
  createAuthStore,
  type NotifyHandle,
} from './store.ts'
import { createTokenPrincipals, type TokenPrincipals } from './token-principals.ts'
import { createTokenVerifier } from './tokens.ts'

/** Authenticates requests and manages API keys. */
export type Auth = {
  /** Throws an `AppError` of status 401, or 503 if the credential cannot be verified. */
  authenticate(request: Request): Promise<Principal>
  /** The principal of a bare token, as a WebSocket sends it: a JWT or an API key. */
  authenticateToken(token: string): Promise<Principal>
  readonly keys: ApiKeys
  readonly changes: Changes
  close(): Promise<void>
}

/** Cache invalidation after changes of users and groups, in this and all other processes. */
export type Changes = {
  /** Notifies every process when this transaction is committed. */
  notifyOnCommit(transaction: NotifyHandle, change: Change): Promise<void>
  /** Applies a change to this process; to be called after the commit. */
  apply(change: Change): Promise<void>
}

export type AuthDeps = {
  config: Pick<Config, 'jwt' | 'apiKeys' | 'groups' | 'platformVersion'>
  database: AuthDatabase
  audit: Pick<Audit, 'record'>
  log: Log
  now: () => Date
  fetch: typeof fetch
  /** Called with the error kind of each failed authentication. */
  onFailure?: (kind: string) => void
}

/** One of `jwt.secret` and `jwt.jwksUrl` must be configured. */
export async function createAuth(deps: AuthDeps): Promise<Auth> {
  const { config, database, log, now, onFailure = () => {} } = deps
  assert(config.jwt.secret ?? config.jwt.jwksUrl, 'a JWT secret or key set is configured')
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
    onIdpGroupsChanged: (userId) => notify({ what: 'idp_groups', id: userId }),
  })
  const apply = createChangeHandler({ groups, keys, tokens })
  const notify = createNotifier({ store, apply, log })
  await store.listen({
    onChange: (change) => void apply(change),
    onGap: () => void apply({ what: 'all', id: '' }),
  })
  await notify({ what: 'groups', id: '' })
  const rules = { bearerKeys: takesBearerKeys(config.platformVersion) }
  const authenticate = async (read: () => Credential): Promise<Principal> => {
    try {
      const credential = read()
      return credential.kind === 'jwt'
        ? await tokens.authenticate(credential.token)
        : await keys.authenticate(credential.key)
    } catch (error) {
      if (error instanceof AppError) onFailure(error.kind)
      throw error
    }
  }
  return {
    authenticate: (request) => authenticate(() => readCredential(request, rules)),
    authenticateToken: (token) => authenticate(() => readToken(token)),
    keys: createApiKeys({
      store,
      now,
      pepper,
      audit: deps.audit,
      onRevoked: (keyId) => notify({ what: 'key', id: keyId }),
    }),
    changes: { notifyOnCommit: store.notifyOnCommit, apply },
    async close() {
      verifier.close()
      await keys.close()
    },
  }
}

type Caches = {
  groups: Pick<GroupRights, 'reload'>
  keys: Pick<KeyPrincipals, 'invalidate'>
  tokens: Pick<TokenPrincipals, 'invalidate'>
}

/** Invalidates the caches that a change affects. */
function createChangeHandler({ groups, keys, tokens }: Caches) {
  return async ({ what, id }: Change): Promise<void> => {
    switch (what) {
      case 'key':
        keys.invalidate({ keyId: id })
        return
      case 'idp_groups':
        keys.invalidate({ userId: id })
        return
      case 'user':
        keys.invalidate({ userId: id })
        tokens.invalidate({ userId: id })
        return
      case 'groups':
        return groups.reload()
      case 'all':
        keys.invalidate()
        tokens.invalidate()
        return groups.reload()
      default:
        assertNever(what)
    }
  }
}

/** Applies a change here and notifies the other processes; if that fails, their caches expire. */
function createNotifier(options: {
  store: Pick<AuthStore, 'notify'>
  apply: (change: Change) => Promise<void>
  log: Pick<Log, 'error'>
}) {
  return async (change: Change): Promise<void> => {
    await options.apply(change)
    try {
      await options.store.notify(change)
    } catch (error) {
      options.log.error('auth change notification failed', { change, error })
    }
  }
}
