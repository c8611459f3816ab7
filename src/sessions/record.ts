import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '#api/request-schema.ts'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import type { Principal } from '#auth/principal.ts'
import type { SessionRecord } from '#auth/session-store.ts'
import { callerExample, callerRecord, renderCaller } from '#directory/me-endpoint.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

const secretCharsMax = 16_384

/** The body of `POST /v1/session`. */
export const newSession = Type.Object(
  {
    token: Type.Optional(
      Type.String({ description: 'A token (JWT).', minLength: 1, maxLength: secretCharsMax }),
    ),
    code: Type.Optional(
      Type.String({ description: 'Of a printed link.', minLength: 1, maxLength: 256 }),
    ),
  },
  { additionalProperties: false },
)
export type NewSessionBody = Static<typeof newSession>
const newSessionChecker = compileChecker(newSession)

export function readNewSession(body: unknown): NewSessionBody {
  if (!newSessionChecker.check(body)) throw refusedBySchema(newSessionChecker.firstError(body))
  if ((body.token === undefined) === (body.code === undefined)) {
    throw refused('', 'Either "token" or "code" is required.')
  }
  return body
}

const method = oneOf(['oidc', 'token', 'code'], 'How the user logged in.')
const sessionTimes = {
  created_at: instant('When the user logged in'),
  expires_at: instant('When the session ends at the latest'),
}

/** The response of `GET /v1/session`. */
export const currentSession = Type.Object(
  {
    object: Type.Literal('session'),
    user: nullable(callerRecord, 'Null without a valid credential.'),
    session: nullable(
      Type.Object({ id: Type.String({ format: 'uuid' }), method, ...sessionTimes }),
      'Of the cookie; null with another credential.',
    ),
    login: Type.Object({
      oidc: Type.Boolean({ description: 'Whether users log in at the identity provider.' }),
      token: Type.Boolean({ description: 'Whether `POST /v1/session` accepts tokens.' }),
      login_url: nullable(Type.String(), 'Where a browser logs in; it takes `return_to`.'),
    }),
  },
  { $id: 'Session' },
)

export function renderSession(
  principal: Principal | null,
  { oidc, token }: { oidc: boolean; token: boolean },
): Static<typeof currentSession> {
  const session =
    principal?.credential.kind === 'jwt' ? (principal.credential.session ?? null) : null
  return {
    object: 'session',
    user: principal && renderCaller(principal),
    session: session && {
      id: session.id,
      method: session.method,
      created_at: session.createdAt.toISOString(),
      expires_at: session.expiresAt.toISOString(),
    },
    login: { oidc, token, login_url: oidc ? '/login' : null },
  }
}

/** An item of `GET /v1/sessions`. */
export const sessionItem = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('login_session'),
    method,
    user_agent: Type.String({ description: 'What the browser called itself.' }),
    created_at: sessionTimes.created_at,
    last_used_at: instant('The last request, to the minute'),
    expires_at: sessionTimes.expires_at,
    current: Type.Boolean({ description: 'Whether it is the session of this request.' }),
  },
  { $id: 'LoginSession' },
)

export function renderSessionItem(
  session: SessionRecord,
  currentId: string | null,
): Static<typeof sessionItem> {
  return {
    id: session.id,
    object: 'login_session',
    method: session.method,
    user_agent: session.userAgent,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    current: session.id === currentId,
  }
}

/** The response of `DELETE /v1/session`. */
export const endedSession = Type.Object({
  object: Type.Literal('session.deleted'),
  deleted: Type.Literal(true),
  logout_url: nullable(
    Type.String(),
    'Where the browser ends the session at the identity provider; null if there is none.',
  ),
})

export const sessionExample: Static<typeof currentSession> = {
  object: 'session',
  user: callerExample,
  session: {
    id: idExample,
    method: 'oidc',
    created_at: instantExample,
    expires_at: '2026-11-22T09:30:00.000Z',
  },
  login: { oidc: true, token: false, login_url: '/login' },
}
export const sessionItemExample: Static<typeof sessionItem> = {
  id: idExample,
  object: 'login_session',
  method: 'oidc',
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0',
  created_at: instantExample,
  last_used_at: instantExample,
  expires_at: '2026-11-22T09:30:00.000Z',
  current: true,
}
