import { Type } from '@sinclair/typebox'
import { type CallerContext, type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deletedResponse, idExample, pageQuery, pageResponse, renderPage } from '#api/shapes.ts'
import { actorOf } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import { requireSameOrigin } from '#auth/session-cookie.ts'
import { expiryOf, type SessionEnd } from '#auth/sessions.ts'
import { signDevelopmentToken } from '#auth/tokens.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import { createAttemptLimit, tooManyAttempts } from './attempt-limit.ts'
import type { AttemptStore } from './attempt-store.ts'
import { beginSession, endedCookie, insecure, requireSafeOrigin } from './browser-login.ts'
import { type LogoutDeps, logOut, principalOf, sessionIdOf } from './logout.ts'
import {
  currentSession,
  endedSession,
  type NewSessionBody,
  newSession,
  readNewSession,
  renderSession,
  renderSessionItem,
  sessionExample,
  sessionItem,
  sessionItemExample,
} from './record.ts'
import { codeSessionS, type StartCodes } from './start-codes.ts'

export type SessionEndpointsDeps = LogoutDeps & {
  auth: Pick<Auth, 'authenticateSession' | 'verifyToken' | 'addressOf'>
  config: Pick<Config, 'jwt' | 'login'>
  startCodes: Pick<StartCodes, 'take'>
  attemptStore: AttemptStore
  now: () => Date
}

/** Failed logins of an address. */
const attemptsMax = 30
const attemptWindowMs = 60_000
const bodyBytesMax = 65_536
const wrongCode =
  'This code is not valid any more: it works once, and a new start prints a new one.'
const tokensOff = 'Log in at the identity provider; tokens are not accepted here.'

/** The session of a browser: who is logged in, logging in with a token, and logging out. */
export function sessionEndpoints(deps: SessionEndpointsDeps): Endpoint[] {
  const { auth, config, startCodes, attemptStore, now } = deps
  const limits = { attemptsMax, windowMs: attemptWindowMs }
  const attempts = createAttemptLimit({ store: attemptStore, kind: 'login', ...limits })
  const methods = loginMethods(config)

  /** The claims and the end of a session that begins with this. */
  async function verify({ token, code }: NewSessionBody) {
    if (token !== undefined) {
      if (!methods.token) {
        throw new AppError('permission_denied', tokensOff, { code: 'login_method_disabled' })
      }
      const claims = await auth.verifyToken(token)
      const expiresAt = expiryOf(now(), config.login.sessionS, claims.expiresAtS)
      return { claims, expiresAt, method: 'token' } as const
    }
    if (!(await startCodes.take(code ?? ''))) {
      throw new AppError('invalid_token', wrongCode, { code: 'invalid_login_code' })
    }
    const validS = codeSessionS
    const admin = { subject: 'dev', groups: ['admins'], validS, now: now() }
    const claims = await auth.verifyToken(await signDevelopmentToken(config, admin))
    return { claims, expiresAt: expiryOf(now(), codeSessionS), method: 'code' } as const
  }

  return [
    endpoint({
      method: 'GET',
      path: '/v1/session',
      permission: 'public',
      tag: 'Sessions',
      summary: 'Show who is logged in',
      description:
        'With any credential. Without a valid one `user` is null, and `login` tells how to log in.',
      responses: {
        200: { description: 'The session.', content: json(currentSession, sessionExample) },
      },
      errors: unavailable,
      async handle({ request, set, server }) {
        set.headers['cache-control'] = 'no-store'
        return renderSession(await principalOf(auth, request, server), methods)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/session',
      permission: 'public',
      tag: 'Sessions',
      summary: 'Log in with a token or a code',
      description: `Begins a session in a cookie and ends the one that the browser had. \`token\`: a token of the identity
provider, where browsers cannot log in there, or one that the operator signed. \`code\`: of the link that a gateway in
development prints; it works once. Requires the header \`x-sluice-csrf\`. A request with the cookie that changes
something needs this header as well, and comes from the pages of the gateway only.`,
      body: jsonBody(newSession, {
        example: { code: 'XX9wB…' },
        bytesMax: bodyBytesMax,
        read: readNewSession,
      }),
      responses: {
        201: {
          description: 'The session.',
          content: json(currentSession, sessionExample),
          headers: { 'set-cookie': 'The session; not readable for scripts.' },
        },
      },
      errors: {
        unprocessable: 'Either "token" or "code" is required.',
        invalid_token: [
          'The token has expired.',
          { code: 'invalid_login_code', message: wrongCode },
        ],
        permission_denied: [
          {
            code: 'csrf_refused',
            message: 'A change with a session cookie needs the header x-sluice-csrf: 1.',
          },
          { code: 'login_method_disabled', message: tokensOff },
          { code: 'https_required', message: insecure },
        ],
        rate_limit_exceeded: tooManyAttempts,
        ...unavailable,
      },
      async handle({ request, body, context, set, server }) {
        // Before the cookie exists as well: another site could log a user in as somebody else.
        const origin = requireSafeOrigin(deps, request, server)
        requireSameOrigin(request, { origin, isUpgrade: false })
        const client = auth.addressOf(request, server)
        const login = await attempts.attempt(client, () => verify(body))
        const { secret, cookie } = await beginSession(
          deps,
          { request, origin, peers: server, requestId: context.requestId },
          login,
        )
        set.headers['set-cookie'] = cookie
        set.headers['cache-control'] = 'no-store'
        return renderSession(await auth.authenticateSession(secret), methods)
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/session',
      permission: 'public',
      tag: 'Sessions',
      summary: 'Log out',
      description:
        'Ends the session of the cookie on every replica within a second. Without one nothing happens. `logout_url` ends the session at the identity provider, if it supports that.',
      responses: {
        200: {
          description: 'The session has ended.',
          content: json(endedSession, {
            object: 'session.deleted',
            deleted: true,
            logout_url: 'https://id.example.org/logout?id_token_hint=…',
          }),
        },
      },
      errors: {
        permission_denied: {
          code: 'csrf_refused',
          message: 'A change with a session cookie needs the header x-sluice-csrf: 1.',
        },
        ...unavailable,
      },
      async handle({ request, context, set, server }) {
        const logoutUrl = await logOut(deps, {
          request,
          peers: server,
          requestId: context.requestId,
        })
        set.headers['set-cookie'] = endedCookie(auth.originOf(request, server))
        return { object: 'session.deleted', deleted: true, logout_url: logoutUrl }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/sessions',
      permission: 'can_access_api',
      tag: 'Sessions',
      summary: 'List your sessions',
      description: 'Newest first.',
      query: pageQuery,
      responses: { 200: pageResponse('A page of sessions.', sessionItem, sessionItemExample) },
      async handle({ query, context: { principal } }) {
        const page = await auth.sessions.list(principal.userId, query)
        return renderPage(page, (session) => renderSessionItem(session, sessionIdOf(principal)))
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/sessions',
      permission: 'can_access_api',
      tag: 'Sessions',
      summary: 'End all of your sessions',
      description:
        'Also the one of this request: a browser has to log in again. API keys stay valid.',
      responses: {
        200: {
          description: 'The sessions have ended.',
          content: json(sessionsEnded, {
            object: 'login_sessions.deleted',
            deleted: true,
            sessions: 3,
          }),
        },
      },
      async handle({ context }) {
        const { userId } = context.principal
        const ended = await auth.sessions.end({ userId }, revokedBy(context))
        return { object: 'login_sessions.deleted', deleted: true, sessions: ended.length }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/sessions/:id',
      permission: 'can_access_api',
      tag: 'Sessions',
      summary: 'End one of your sessions',
      description: 'On every replica within a second, with its open WebSockets.',
      params: { id: 'The id of the session.' },
      responses: {
        200: deletedResponse('The session has ended.', 'login_session.deleted', idExample),
      },
      errors: { not_found: noSession },
      async handle({ params: { id }, context }) {
        const { userId } = context.principal
        const ended = isUuid(id) ? await auth.sessions.end({ id, userId }, revokedBy(context)) : []
        if (ended.length === 0) throw new AppError('not_found', noSession)
        return { id, object: 'login_session.deleted', deleted: true }
      },
    }),
  ]
}

const sessionsEnded = Type.Object({
  object: Type.Literal('login_sessions.deleted'),
  deleted: Type.Literal(true),
  sessions: Type.Integer({ description: 'How many there were.' }),
})

function revokedBy(context: CallerContext): SessionEnd {
  return { actor: actorOf(context), reason: 'revoked' }
}

const noSession = 'You have no session with this id.'
const unavailable = { service_unavailable: 'The database is temporarily unavailable; retry.' }

/** How browsers can log in. */
function loginMethods({ login, jwt }: Pick<Config, 'login' | 'jwt'>) {
  const oidc = login.clientId !== undefined
  return { oidc, token: jwt.secret !== undefined || !oidc }
}
