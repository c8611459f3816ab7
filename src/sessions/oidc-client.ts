import type { createRemoteJWKSet, JWTPayload } from 'jose'
import type * as Oidc from 'openid-client'
import type { Auth } from '#auth/auth.ts'
import type { TokenClaims } from '#auth/tokens.ts'
import type { Config } from '#config/schema.ts'
import { assert } from '#lib/assert.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { type LoginState, openLoginState, sealLoginState } from './login-state.ts'

export type OidcClient = ReturnType<typeof createOidcClient>

/** What a provider gave for a login or a refresh. */
export type ProviderLogin = {
  readonly claims: TokenClaims
  /** Its own session, which a logout at the provider names. */
  readonly session: string | null
  readonly refreshToken: string | null
  readonly idToken: string | null
  /** When the tokens expire. */
  readonly expiresAtS: number
}

type OidcClientOptions = {
  config: Pick<Config, 'login' | 'jwt'>
  auth: Pick<Auth, 'readClaims' | 'verifyToken'>
  sealer: Sealer
  now: () => Date
}

const requestTimeoutS = 10
/** How long the metadata of the provider is used. */
const metadataAgeMs = 3_600_000
/** A provider that does not say when its tokens expire. */
const expiresInDefaultS = 300
const callbackPath = '/login/callback'
const afterLogoutPath = '/console/'
/** https://openid.net/specs/openid-connect-backchannel-1_0.html */
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
const logoutTokenAgeMaxS = 300

type Provider = {
  readonly library: typeof Oidc
  readonly client: Oidc.Configuration
  readonly keys: ReturnType<typeof createRemoteJWKSet>
  readonly loadedAt: number
}

/** The authorisation code flow with PKCE against the configured identity provider. */
export function createOidcClient({ config, auth, sealer, now }: OidcClientOptions) {
  const { login, jwt } = config
  const { clientId, clientSecret, issuer = jwt.issuer } = login
  assert(clientId && issuer, 'a client of an identity provider is configured')
  let provider: Promise<Provider> | undefined

  async function load(): Promise<Provider> {
    // Loaded with the first login: no other request needs it.
    const [library, { createRemoteJWKSet }] = await Promise.all([
      import('openid-client'),
      import('jose'),
    ])
    const { allowInsecureRequests, discovery, enableNonRepudiationChecks } = library
    const isPlain = issuer?.startsWith('http:') === true
    const metadata = { [library.clockTolerance]: jwt.clockSkewS }
    const options = {
      timeout: requestTimeoutS,
      ...(isPlain ? { execute: [allowInsecureRequests] } : {}),
    }
    const found = await discovery(
      new URL(issuer ?? ''),
      clientId ?? '',
      metadata,
      library.None(),
      options,
    )
    const server = found.serverMetadata()
    const client = new library.Configuration(
      server,
      clientId ?? '',
      metadata,
      clientAuthentication(library, server, clientSecret),
    )
    client.timeout = requestTimeoutS
    if (isPlain) allowInsecureRequests(client)
    enableNonRepudiationChecks(client)
    const keys = createRemoteJWKSet(new URL(server.jwks_uri ?? ''))
    return { library, client, keys, loadedAt: performance.now() }
  }

  async function connect(): Promise<Provider> {
    const known = await provider?.catch(() => undefined)
    if (known !== undefined && performance.now() - known.loadedAt < metadataAgeMs) return known
    provider = load()
    return provider
  }

  /** The user of these tokens, with the groups wherever the provider lists them. */
  async function readIdentity(
    { library, client }: Provider,
    tokens: Oidc.TokenEndpointResponse & Oidc.TokenEndpointResponseHelpers,
  ): Promise<{ claims: TokenClaims; payload: JWTPayload }> {
    const idClaims = tokens.claims()
    const { groupsClaim } = jwt
    const issuedNow = { iat: unixSeconds(now()) }
    if (idClaims !== undefined && groupsClaim in idClaims) {
      const payload = { ...idClaims }
      return { claims: auth.readClaims(payload), payload }
    }
    const ofAccess = await auth.verifyToken(tokens.access_token).catch(() => undefined)
    const isOfUser = idClaims === undefined || ofAccess?.subject === idClaims.sub
    if (ofAccess !== undefined && isOfUser && ofAccess.groups.length > 0) {
      return { claims: ofAccess, payload: { ...idClaims } }
    }
    const hasUserInfo = client.serverMetadata().userinfo_endpoint !== undefined
    const expected = idClaims?.sub ?? library.skipSubjectCheck
    const userInfo = hasUserInfo
      ? await library.fetchUserInfo(client, tokens.access_token, expected)
      : {}
    const payload: JWTPayload = { ...issuedNow, ...userInfo, ...idClaims }
    return { claims: auth.readClaims(payload), payload }
  }

  async function readLogin(
    found: Provider,
    tokens: Oidc.TokenEndpointResponse & Oidc.TokenEndpointResponseHelpers,
  ): Promise<ProviderLogin> {
    const { claims, payload } = await readIdentity(found, tokens)
    const nowS = unixSeconds(now())
    const { expires_in: expiresInS = expiresInDefaultS } = tokens
    return {
      claims,
      session: typeof payload['sid'] === 'string' ? payload['sid'] : null,
      refreshToken: tokens.refresh_token ?? null,
      idToken: tokens.id_token ?? null,
      expiresAtS: Math.max(nowS + expiresInS, tokens.claims()?.exp ?? 0),
    }
  }

  return {
    /** Where a browser logs in, and what it brings back in a cookie. */
    async begin(
      given: Pick<LoginState, 'origin' | 'returnTo' | 'former'>,
    ): Promise<{ url: URL; state: string }> {
      const { library, client } = await connect()
      const state: LoginState = {
        state: library.randomState(),
        nonce: library.randomNonce(),
        verifier: library.randomPKCECodeVerifier(),
        ...given,
        startedAtMs: now().getTime(),
      }
      const url = library.buildAuthorizationUrl(client, {
        redirect_uri: given.origin + callbackPath,
        scope: login.scopes,
        state: state.state,
        nonce: state.nonce,
        code_challenge: await library.calculatePKCECodeChallenge(state.verifier),
        code_challenge_method: 'S256',
      })
      return { url, state: sealLoginState(sealer, state) }
    },

    /** The state of the cookie; null if it is not from this gateway, or too old. */
    openState: (sealed: string): LoginState | null => openLoginState(sealer, sealed, now()),

    /** Exchanges the code of a callback. Throws errors of `openid-client`. */
    async finish(search: string, { origin, ...state }: LoginState): Promise<ProviderLogin> {
      const found = await connect()
      const tokens = await found.library.authorizationCodeGrant(
        found.client,
        new URL(callbackPath + search, origin),
        {
          pkceCodeVerifier: state.verifier,
          expectedState: state.state,
          expectedNonce: state.nonce,
          idTokenExpected: true,
        },
      )
      return readLogin(found, tokens)
    },

    /** New tokens; null if the provider has ended the session. */
    async refresh(refreshToken: string): Promise<ProviderLogin | null> {
      const found = await connect()
      try {
        return await readLogin(
          found,
          await found.library.refreshTokenGrant(found.client, refreshToken),
        )
      } catch (error) {
        const { ResponseBodyError } = found.library
        if (error instanceof ResponseBodyError && error.error === 'invalid_grant') return null
        throw error
      }
    },

    /** Where a browser ends its session at the provider; null if the provider has no such place. */
    async logoutUrl(
      { id, idToken }: { id: string; idToken: string | null },
      origin: string,
    ): Promise<string | null> {
      const { library, client } = await connect()
      if (client.serverMetadata().end_session_endpoint === undefined) return null
      const hint = idToken && sealer.open('login', id, idToken)
      const url = library.buildEndSessionUrl(client, {
        post_logout_redirect_uri: origin + afterLogoutPath,
        ...(hint ? { id_token_hint: hint } : {}),
      })
      return url.href
    },

    /** Which sessions a logout token of the provider ends; throws if it is not valid. */
    async readLogoutToken(token: string): Promise<{ subject?: string; session?: string }> {
      const { keys, client } = await connect()
      const { jwtVerify } = await import('jose')
      const { payload } = await jwtVerify(token, keys, {
        issuer: client.serverMetadata().issuer,
        audience: clientId ?? '',
        algorithms: config.jwt.algorithms,
        clockTolerance: jwt.clockSkewS,
        currentDate: now(),
        maxTokenAge: logoutTokenAgeMaxS,
        requiredClaims: ['iat', 'events'],
      })
      const { events, sub, sid, nonce } = payload
      const isLogout = Object.hasOwn(Object(events), logoutEvent) && nonce === undefined
      if (!isLogout || (sub === undefined && sid === undefined)) {
        throw new Error('this is not a logout token')
      }
      return {
        ...(sub === undefined ? {} : { subject: sub }),
        ...(sid === undefined ? {} : { session: String(sid) }),
      }
    },
  }
}

function clientAuthentication(
  library: typeof Oidc,
  server: Readonly<Oidc.ServerMetadata>,
  secret: string | undefined,
): Oidc.ClientAuth {
  if (secret === undefined) return library.None()
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  return methods.includes('client_secret_basic')
    ? library.ClientSecretBasic(secret)
    : library.ClientSecretPost(secret)
}
