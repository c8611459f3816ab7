import type { JWTPayload } from 'jose'
import type { Audit } from '#audit/store.ts'
import type { Config } from '#config/schema.ts'
import { assert, assertNever } from '#lib/assert.ts'
import { type ClientAddresses, createClientAddresses, type Peers } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { createApiKeys } from './api-keys.ts'
import { type Credential, readCredential, readToken } from './credentials.ts'
import { createCurrentPrincipals } from './current-principals.ts'
import { createGroupRights } from './groups.ts'
import { createKeyPrincipals } from './key-principals.ts'
import { shippedGroups } from './permissions.ts'
import type { Principal } from './principal.ts'
import { createSessionPrincipals } from './session-principals.ts'
import { createSessions } from './sessions.ts'
import { type AuthDatabase, type Change, createAuthStore } from './store.ts'
import { createTokenPrincipals } from './token-principals.ts'
import { createTokenVerifier, readClaims } from './tokens.ts'
import { createWatchers } from './watchers.ts'

export type Auth = Awaited<ReturnType<typeof createAuth>>

/** Cache invalidation after changes of users and groups, in this and all other processes. */
export type Changes = Auth['changes']

/** Where a credential was received. */
type Connection = { readonly request: Request; readonly peers: Peers | null }

export type AuthDeps = {
  config: Pick<Config, 'jwt' | 'apiKeys' | 'groups' | 'platformVersion' | 'login'>
  database: AuthDatabase
  audit: Pick<Audit, 'record'>
  log: Log
  now: () => Date
  fetch: typeof fetch
  /** Called with the error kind of each failed authentication. */
  onFailure?: (kind: string) => void
  /** By default no proxy is trusted. */
  clientAddresses?: ClientAddresses
}

/**
 * Authenticates requests and manages API keys. One of `jwt.secret` and `jwt.jwksUrl` must be
 * configured.
 */
export async function createAuth(deps: AuthDeps) {
  const { config, database, log, now, audit, onFailure = () => {} } = deps
  const { clientAddresses = createClientAddresses([]) } = deps
  assert(config.jwt.secret ?? config.jwt.jwksUrl, 'a JWT secret or key set is configured')
  const store = createAuthStore(database)
  await store.seedGroups(shippedGroups, config.groups)
  const groups = await createGroupRights({ load: store.loadGroups, log })
  const { cacheMs, pepper } = config.apiKeys
  const keys = createKeyPrincipals({ store, groups, now, log, cacheMs, pepper })
  const verifier = createTokenVerifier({ settings: config.jwt, now, fetch: deps.fetch, log })
  const watchers = createWatchers()
  const onIdpGroupsChanged = (userId: string) => notify({ what: 'idp_groups', id: userId })
  const idleMs = config.login.idleS * 1000
  const browsers = createSessionPrincipals({ store, groups, now, log, cacheMs, idleMs })
  const tokens = createTokenPrincipals({ verifier, store, groups, now, log, onIdpGroupsChanged })

  /** Applies a change to this process: to its caches, then to its open connections. */
  async function apply(change: Change): Promise<void> {
    await invalidate(change)
    void watchers.changed(change)
  }

  async function invalidate({ what, id }: Change): Promise<void> {
    switch (what) {
      case 'key':
        return keys.invalidate({ keyId: id })
      case 'session':
        return browsers.invalidate({ userId: id })
      case 'idp_groups':
        browsers.invalidate({ userId: id })
        return keys.invalidate({ userId: id })
      case 'user':
        keys.invalidate({ userId: id })
        browsers.invalidate({ userId: id })
        return tokens.invalidate({ userId: id })
      case 'groups':
        return groups.reload()
      case 'all':
        keys.invalidate()
        browsers.invalidate()
        tokens.invalidate()
        return groups.reload()
      default:
        assertNever(what)
    }
  }

  /** Applies a change here and notifies the other processes; if that fails, their caches expire. */
  async function notify(change: Change): Promise<void> {
    await apply(change)
    try {
      await store.notify(change)
    } catch (error) {
      log.error('auth change notification failed', { change, error })
    }
  }

  /** The principal; a promise of it, unless the credential was verified before. */
  function authenticate(
    read: () => Credential,
    connection: Connection | null = null,
  ): Principal | Promise<Principal> {
    try {
      const credential = read()
      const known = findKnown(credential)
      if (known === null) return verify(credential, connection)
      requireKnownAddress(known.credential, clientAddresses, connection)
      return known
    } catch (error) {
      throw counted(error)
    }
  }

  function findKnown(credential: Credential): Principal | null {
    if (credential.kind === 'jwt') return tokens.known(credential.token)
    return credential.kind === 'session' ? null : keys.known(credential.key)
  }

  async function verify(credential: Credential, connection: Connection | null) {
    try {
      if (credential.kind === 'jwt') return await tokens.authenticate(credential.token)
      if (credential.kind === 'session') return await browsers.authenticate(credential.secret)
      const principal = await keys.authenticate(credential.key)
      requireKnownAddress(principal.credential, clientAddresses, connection)
      return principal
    } catch (error) {
      throw counted(error)
    }
  }

  function counted(error: unknown): unknown {
    if (error instanceof AppError) onFailure(error.kind)
    return error
  }

  await store.listen({
    onChange: (change) => void apply(change),
    onGap: () => void apply({ what: 'all', id: '' }),
  })
  await notify({ what: 'groups', id: '' })
  // Before 1.2.1 the platform's gateway treated every bearer value as a JWT.
  const { publicUrl } = config.login
  const publicOrigin = publicUrl === undefined ? null : new URL(publicUrl).origin
  const originOf = (request: Request, peers: Peers | null) =>
    publicOrigin ?? clientAddresses.originOf(request, peers)
  const rules = { bearerKeys: config.platformVersion !== '1.2.0', originOf }
  const onChanged = (keyId: string) => notify({ what: 'key', id: keyId })
  return {
    /**
     * The principal; a promise of it, unless the credential was verified before. Throws or rejects with
     * an `AppError` of status 401, or 503 if the credential cannot be verified.
     */
    authenticate: (request: Request, peers: Peers | null = null) =>
      authenticate(() => readCredential(request, rules, peers), { request, peers }),
    /** The origin of the gateway as the browser of a request sees it. */
    originOf,
    /** The address of the client behind trusted proxies; empty if it is not known. */
    addressOf: (request: Request, peers: Peers | null) => clientAddresses.of(request, peers) ?? '',
    /** The principal of a bare token, as a WebSocket sends it: a JWT or an API key. */
    authenticateToken: async (token: string) => authenticate(() => readToken(token)),
    /** The principal of the value of a cookie. */
    authenticateSession: (secret: string) => verify({ kind: 'session', secret }, null),
    /** The principal of work that runs later than its request. */
    currentPrincipal: createCurrentPrincipals({ store, groups, now }),
    /** Authorises an open connection again after each change that may concern it. */
    watch: watchers.watch,
    keys: createApiKeys({ store, now, pepper, audit, onChanged }),
    sessions: createSessions({
      store,
      now,
      audit,
      onIdpGroupsChanged,
      onChanged: (userId) => notify({ what: 'session', id: userId }),
    }),
    /** Sets what happens when the tokens behind a session have expired. */
    renewSessionsWith: browsers.renewWith,
    /** Verifies a token of the identity provider; throws `invalid_token`. */
    verifyToken: verifier.verify,
    /** The claims of an id token, whose signature and audience were checked. */
    readClaims: (payload: JWTPayload) => readClaims(payload, { settings: config.jwt, now }),
    changes: {
      /** Notifies every process when this transaction is committed. */
      notifyOnCommit: store.notifyOnCommit,
      /** Applies a change to this process; to be called after the commit. */
      apply,
    },
    /**
     * Overwrites the groups that have changed in the configuration. Those that it no longer names stay,
     * and administrators may edit them.
     */
    async changeGroups(before: Config['groups'], next: Config['groups']): Promise<void> {
      const changed = Object.entries(next).filter(
        ([name, permissions]) => !Bun.deepEquals(before[name], permissions),
      )
      if (changed.length === 0) return
      await store.overwriteGroups(Object.fromEntries(changed))
      await notify({ what: 'groups', id: '' })
    },
    /** Trusts other secrets or keys of tokens; open connections are authorised again. */
    changeTokenTrust(next: Config['jwt']): void {
      verifier.change(next)
      void watchers.changed({ what: 'all', id: '' })
    },
    async close(): Promise<void> {
      verifier.close()
      await browsers.close()
      await keys.close()
    },
  }
}

/** Throws `permission_denied` with the code `ip_not_allowed`. */
function requireKnownAddress(
  credential: Principal['credential'],
  clientAddresses: ClientAddresses,
  connection: Connection | null,
): void {
  if (credential.kind !== 'api-key' || credential.allowedIps === null) return
  const address = connection && clientAddresses.of(connection.request, connection.peers)
  if (address !== null && credential.allowedIps.includes(address)) return
  throw new AppError(
    'permission_denied',
    `This API key may not be used from the address ${address ?? 'of this connection'}.`,
    { code: 'ip_not_allowed' },
  )
}
