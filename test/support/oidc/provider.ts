import { generateKeyPairSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { Provider } from 'oidc-provider'

/** A real OpenID provider on loopback, in which everybody is logged in who comes. */
export type OidcProvider = {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** The user who logs in next, and what the provider says of them. */
  user: { subject: string; groups: readonly string[]; name: string }
  /** Accepts logins that lead back to this origin; to be called before the first login. */
  serve(origin: string, options?: ProviderOptions): void
  /** Requests of its endpoints so far, by path. */
  requests(path: string): number
  /** From now on every request of this path gets this response instead; null ends that. */
  answer(path: string, how: (() => { status: number; body: string }) | null): void
  /** Ends its own session and those of its clients, as an administrator would. */
  revoke(): void
  stop(): Promise<void>
}

type ProviderOptions = {
  /** Whether id tokens list the groups; otherwise only the user info does. */
  groupsInIdToken?: boolean
  refreshTokens?: boolean
  accessTokenS?: number
  backchannelLogout?: boolean
  /** The user refuses to log in. */
  denies?: boolean
}

/** `localhost` is another site than the `127.0.0.1` of the gateways. */
export async function startOidcProvider(): Promise<OidcProvider> {
  let handler: ReturnType<Provider['callback']> | undefined
  const counts = new Map<string, number>()
  const answers = new Map<string, () => { status: number; body: string }>()
  const stored = new Map<string, unknown>()
  const server = await new Promise<Server>((resolve) => {
    const listening = createServer((request, response) => {
      const path = (request.url ?? '').split('?', 1).join()
      counts.set(path, (counts.get(path) ?? 0) + 1)
      const scripted = answers.get(path)?.()
      if (scripted !== undefined) {
        response.writeHead(scripted.status, { 'content-type': 'application/json' })
        response.end(scripted.body)
      } else {
        handler?.(request, response)
      }
    }).listen(0, '127.0.0.1', () => resolve(listening))
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const issuer = `http://localhost:${port}`
  const provider: OidcProvider = {
    issuer,
    clientId: 'sluice',
    clientSecret: 'a client secret that only the tests know',
    user: { subject: 'ann', groups: ['users'], name: 'Ann Example' },
    serve(origin, options) {
      handler = createHandler(provider, { origin, stored, ...options })
    },
    requests: (path) => counts.get(path) ?? 0,
    answer(path, how) {
      if (how === null) answers.delete(path)
      else answers.set(path, how)
    },
    revoke: () => stored.clear(),
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
  return provider
}

function createHandler(
  provider: OidcProvider,
  options: ProviderOptions & { origin: string; stored: Map<string, unknown> },
) {
  const { origin, stored, refreshTokens = false, accessTokenS = 3_600 } = options
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const instance = new Provider(provider.issuer, {
    adapter: adapterOn(stored),
    clients: [
      {
        client_id: provider.clientId,
        client_secret: provider.clientSecret,
        redirect_uris: [`${origin}/login/callback`],
        post_logout_redirect_uris: [`${origin}/console/`],
        grant_types: ['authorization_code', 'refresh_token'],
        ...(options.backchannelLogout
          ? {
              backchannel_logout_uri: `${origin}/login/backchannel-logout`,
              backchannel_logout_session_required: true,
            }
          : {}),
      },
    ],
    jwks: {
      keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' }],
    },
    cookies: { keys: ['a key of the cookies of the provider'] },
    claims: { openid: ['sub'], profile: ['name', 'groups'] },
    conformIdTokenClaims: !options.groupsInIdToken,
    pkce: { required: () => true },
    issueRefreshToken: () => refreshTokens,
    rotateRefreshToken: true,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: options.backchannelLogout === true },
      rpInitiatedLogout: {
        enabled: true,
        // The page of the library loads a font from another host.
        logoutSource(context: { body: string }, form: string) {
          context.body = `${form}<button form="op.logoutForm" name="logout" value="yes">Log out</button>`
        },
      },
    },
    ttl: {
      AccessToken: accessTokenS,
      IdToken: accessTokenS,
      AuthorizationCode: 60,
      Grant: 86_400,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 86_400,
    },
    findAccount: (_: unknown, accountId: string) => ({
      accountId,
      claims: () => ({
        sub: accountId,
        name: provider.user.name,
        groups: [...provider.user.groups],
      }),
    }),
    // Nobody is asked for consent.
    async loadExistingGrant({ oidc }: GrantContext) {
      const of = { clientId: oidc.client.clientId, accountId: oidc.session.accountId }
      const grant = new instance.Grant(of)
      grant.addOIDCScope(String(oidc.params['scope']))
      await grant.save()
      return grant
    },
    interactions: { url: () => '/interaction' },
  })
  const serve = instance.callback()
  return (...[request, response]: Parameters<typeof serve>) => {
    if (request.url?.startsWith('/interaction') !== true) return serve(request, response)
    const result = options.denies
      ? { error: 'access_denied', error_description: 'the user refused' }
      : { login: { accountId: provider.user.subject } }
    void instance.interactionFinished(request, response, result)
  }
}

type GrantContext = {
  oidc: {
    client: { clientId: string }
    session: { accountId: string }
    params: Record<string, unknown>
  }
}

type Payload = Record<string, unknown> & { grantId?: string; uid?: string; userCode?: string }

/** What the provider stores, so that a test can take it away. */
function adapterOn(stored: Map<string, unknown>) {
  return class {
    readonly name: string
    constructor(name: string) {
      this.name = name
    }
    #key(id: string) {
      return `${this.name}:${id}`
    }
    async upsert(id: string, payload: Payload) {
      stored.set(this.#key(id), payload)
    }
    async find(id: string) {
      return stored.get(this.#key(id))
    }
    async findByUid(uid: string) {
      return [...stored.values()].find((payload) => Object(payload).uid === uid)
    }
    async findByUserCode() {
      return undefined
    }
    async consume(id: string) {
      const payload = stored.get(this.#key(id))
      stored.set(this.#key(id), { ...Object(payload), consumed: Math.floor(Date.now() / 1000) })
    }
    async destroy(id: string) {
      stored.delete(this.#key(id))
    }
    async revokeByGrantId(grantId: string) {
      for (const [key, payload] of stored) {
        if (Object(payload).grantId === grantId) stored.delete(key)
      }
    }
  }
}
