import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, rawBody } from '#api/endpoint.ts'
import type { Auth } from '#auth/auth.ts'
import { userIdOf } from '#auth/principal.ts'
import { cookieName, readCookie, renderCookie } from '#auth/session-cookie.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import type { Sealer } from '#sealing/sealer.ts'
import type { Log } from '#telemetry/log.ts'
import {
  beginSession,
  endedCookie,
  formerSession,
  insecure,
  requireSafeOrigin,
} from './browser-login.ts'
import { readForm } from './form.ts'
import { loginMaxS, readReturnTo } from './login-state.ts'
import { logOut } from './logout.ts'
import type { OidcClient, ProviderLogin } from './oidc-client.ts'
import { renewalOf, sealTokens } from './renewal.ts'

export type LoginEndpointsDeps = {
  auth: Pick<Auth, 'authenticate' | 'sessions' | 'originOf' | 'addressOf'>
  config: Pick<Config, 'login'>
  oidc: OidcClient | null
  sealer: Sealer
  log: Pick<Log, 'info' | 'warn'>
  now: () => Date
}

const notConfigured = 'No identity provider is configured for logins (login.client_id).'
const failurePage = '/console/login'

/** Why a login failed, for the page that shows it. */
type LoginFailure =
  | 'login_denied'
  | 'login_expired'
  | 'login_failed'
  | 'user_disabled'
  | 'provider_unreachable'

/** The login of browsers at the identity provider. A browser follows these addresses by itself. */
export function loginEndpoints(deps: LoginEndpointsDeps): Endpoint[] {
  const { auth, oidc, log } = deps
  const shared = { method: 'GET', permission: 'public', tag: 'Sessions' } as const

  return [
    endpoint({
      ...shared,
      path: '/login',
      summary: 'Send a browser to the identity provider',
      description: 'The authorisation code flow with PKCE. The callback leads to `return_to`.',
      query: Type.Object({
        return_to: Type.Optional(Type.String({ description: 'A path of the console.' })),
      }),
      responses: { 302: redirect },
      errors: {
        not_found: { code: 'login_not_configured', message: notConfigured },
        permission_denied: { code: 'https_required', message: insecure },
      },
      async handle({ request, query, server }) {
        const client = requireClient(oidc)
        const origin = requireSafeOrigin(deps, request, server)
        try {
          const former = formerSession(request, origin)?.toString('hex') ?? ''
          const returnTo = readReturnTo(query.return_to)
          const { url, state } = await client.begin({ origin, returnTo, former })
          // Lax: the provider leads back to us, which is a request from another site.
          const options = { origin, maxAgeS: loginMaxS, sameSite: 'Lax' } as const
          return redirectTo(url.href, [renderCookie('login', state, options)])
        } catch (error) {
          log.warn('login failed', { step: 'start', error })
          return redirectTo(`${failurePage}?error=provider_unreachable`)
        }
      },
    }),

    endpoint({
      ...shared,
      path: '/login/callback',
      summary: 'Finish a login at the identity provider',
      description:
        'The redirect URI to register at the provider. A failure leads to `/console/login?error=…`.',
      responses: { 302: redirect },
      errors: { not_found: { code: 'login_not_configured', message: notConfigured } },
      async handle({ request, context, server }) {
        const client = requireClient(oidc)
        const origin = requireSafeOrigin(deps, request, server)
        const sealed = readCookie(request, cookieName('login', origin))
        const state = sealed === null ? null : client.openState(sealed)
        // A state works once: also a failed callback ends it.
        const done = renderCookie('login', '', { origin, maxAgeS: 0, sameSite: 'Lax' })
        const fail = (error: LoginFailure) => redirectTo(`${failurePage}?error=${error}`, [done])
        if (state === null || state.origin !== origin) return fail('login_expired')
        try {
          const login = await client.finish(new URL(request.url).search, state)
          const former = state.former === '' ? null : Buffer.from(state.former, 'hex')
          const { cookie } = await beginSession(
            deps,
            { request, origin, peers: server, requestId: context.requestId },
            sessionOf(deps, login),
            former,
          )
          return redirectTo(readReturnTo(state.returnTo), [done, cookie])
        } catch (error) {
          const failure = classifyFailure(error)
          log.warn('login failed', { step: 'callback', failure, error })
          return fail(failure)
        }
      },
    }),

    endpoint({
      ...shared,
      path: '/logout',
      summary: 'Log a browser out and lead it on',
      description:
        'Ends the session, then leads to the logout of the identity provider if it has one, otherwise to the console. A link on another site logs nobody out.',
      responses: { 302: redirect },
      async handle({ request, context, server }) {
        const site = request.headers.get('sec-fetch-site')
        const isOwn = site === null || site === 'same-origin' || site === 'none'
        if (!isOwn) return redirectTo('/console/')
        const logoutUrl = await logOut(deps, {
          request,
          peers: server,
          requestId: context.requestId,
        })
        return redirectTo(logoutUrl ?? '/console/', [endedCookie(auth.originOf(request, server))])
      },
    }),

    endpoint({
      method: 'POST',
      path: '/login/backchannel-logout',
      permission: 'public',
      tag: 'Sessions',
      summary: 'End sessions that the identity provider has ended',
      description:
        'OpenID Connect Back-Channel Logout 1.0: the address to register at the provider, which calls it.',
      body: rawBody({
        'application/x-www-form-urlencoded': {
          schema: Type.Object({ logout_token: Type.String() }),
        },
      }),
      responses: { 200: { description: 'The sessions have ended.' } },
      errors: {
        not_found: { code: 'login_not_configured', message: notConfigured },
        invalid_request: wrongLogoutToken,
      },
      async handle({ request }) {
        const client = requireClient(oidc)
        const form = await readForm(request)
        const logout = await client
          .readLogoutToken(form.get('logout_token') ?? '')
          .catch((cause) => {
            log.warn('logout token refused', { error: cause })
            throw new AppError('invalid_request', wrongLogoutToken, { cause })
          })
        await auth.sessions.end(selectorOf(logout), { actor: null, reason: 'provider' })
        return new Response(null, { headers: { 'cache-control': 'no-store' } })
      },
    }),
  ]
}

const redirect = { description: 'On to there.', headers: { location: 'The next address.' } }
const wrongLogoutToken = 'The logout token is not valid.'

function requireClient(oidc: OidcClient | null): OidcClient {
  if (oidc === null)
    throw new AppError('not_found', notConfigured, { code: 'login_not_configured' })
  return oidc
}

function redirectTo(location: string, cookies: readonly string[] = []): Response {
  const headers = new Headers({
    location,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 302, headers })
}

/** A session lives as long as the provider goes on refreshing its tokens, or as long as they do. */
function sessionOf({ config, sealer, now }: LoginEndpointsDeps, login: ProviderLogin) {
  const { claims, session, refreshToken, expiresAtS } = login
  const lifetimeEnd = now().getTime() + config.login.sessionS * 1000
  const canRenew = refreshToken !== null
  return {
    claims,
    method: 'oidc',
    expiresAt: new Date(canRenew ? lifetimeEnd : Math.min(lifetimeEnd, expiresAtS * 1000)),
    provider: {
      session,
      renewAt: canRenew ? renewalOf(now(), expiresAtS) : null,
      seal: (sessionId: string) => sealTokens(sealer, sessionId, login),
    },
  } as const
}

function selectorOf({ subject, session }: { subject?: string; session?: string }) {
  if (session !== undefined) return { providerSession: session }
  return { userId: userIdOf(subject ?? ''), method: 'oidc' } as const
}

function classifyFailure(error: unknown): LoginFailure {
  if (error instanceof AppError) {
    return error.wireCode === 'user_disabled' ? 'user_disabled' : 'login_failed'
  }
  const { name = '', code = '' } = Object(error)
  // Of `openid-client`, by their names: the package is loaded only with a login.
  if (name === 'AuthorizationResponseError') {
    return Object(error).error === 'access_denied' ? 'login_denied' : 'login_failed'
  }
  const isUnreachable = name === 'TypeError' || code === 'OAUTH_TIMEOUT' || code === undefined
  return isUnreachable ? 'provider_unreachable' : 'login_failed'
}
