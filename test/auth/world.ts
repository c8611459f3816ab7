import { Value } from '@sinclair/typebox/value'
import type { ServerWebSocket } from 'bun'
import { endpoint } from '#api/endpoint.ts'
import { apiKeyEndpoints } from '#api-keys/endpoints.ts'
import { createAudit } from '#audit/store.ts'
import { type Auth, createAuth } from '#auth/auth.ts'
import { type Config, configSchema } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { createTestApp } from '#test/support/endpoints.ts'
import { signWithSecret } from '#test/support/identity-provider.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** Authentication behind a small application on a real port, with an adjustable clock. */
export type World = {
  readonly auth: Auth
  readonly config: Config
  /** Advances the clock. */
  pass(ms: number): void
  now(): Date
  /** Sends a request and reads the body of its response. */
  send(path: string, options?: SendOptions): Promise<Answer>
  /** A token of a user in these groups, valid for an hour. */
  token(subject: string, groups: readonly string[], claims?: Record<string, unknown>): string
  /** Creates an API key over HTTP. */
  makeKey(
    subject: string,
    groups: readonly string[],
    fields?: Record<string, unknown>,
  ): Promise<{ id: string; key: string }>
  readonly url: URL
  close(): Promise<void>
}

type SendOptions = {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  /** Sent as `Authorization: Bearer …`. */
  bearer?: string
  json?: unknown
}

export type Answer = { status: number; body: unknown; headers: Headers }

export const secret = 'a secret that only the tests know, 32+'

export async function startWorld(
  database: Database,
  settings: {
    jwt?: Partial<Config['jwt']>
    apiKeys?: Partial<Config['apiKeys']>
    groups?: Config['groups']
    platformVersion?: string
  } = {},
): Promise<World> {
  const given = { ...settings, jwt: settings.jwt ?? { secret } }
  const values = Value.Parse(configSchema, Value.Default(configSchema, given))
  const config: Config = { ...values, sources: {}, formerNames: [] }
  let offsetMs = 0
  const now = () => new Date(Date.now() + offsetMs)
  const auth = await createAuth({
    audit: createAudit({ database, now }),
    config,
    database,
    log: quietLog,
    now,
    fetch: fetchWithoutLimit,
  })
  const app = smallApp(auth, config, now).listen({ hostname: '127.0.0.1', port: 0 })
  const url = app.server?.url
  if (url === undefined) throw new Error('the application does not listen')
  const token: World['token'] = (subject, groups, claims = {}) => {
    const nowS = Math.floor(now().getTime() / 1000)
    const usual = { sub: subject, groups, iat: nowS, exp: nowS + 3_600 }
    return signWithSecret(secret, { claims: { ...usual, ...claims } })
  }
  const send: World['send'] = (path, options) => sendTo(new URL(path, url), options)
  return {
    auth,
    config,
    now,
    token,
    send,
    url,
    pass(ms) {
      offsetMs += ms
    },
    async makeKey(subject, groups, fields = {}) {
      const bearer = token(subject, groups)
      const json = { name: 'k', ...fields }
      const answer = await send('/v1/api-keys', { method: 'POST', bearer, json })
      const { id, key } = Object(answer.body)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return { id: String(id), key: String(key) }
    },
    async close() {
      await app.stop(true)
      await auth.close()
    },
  }
}

/** How fast a provider of a test responds depends on the machine; jwks-fetching.test.ts has the limit. */
const fetchWithoutLimit = Object.assign(
  (url: string | URL | Request, { signal: _, ...init }: RequestInit = {}) => fetch(url, init),
  { preconnect: fetch.preconnect },
)

/** The endpoints of API keys, and one endpoint for each authorisation decision. */
function smallApp(auth: Auth, config: Config, now: () => Date) {
  const probe = { method: 'GET', tag: 'Operations', summary: 'Probe', responses: {} } as const
  const endpoints = [
    ...apiKeyEndpoints({ auth, now }),
    endpoint({
      ...probe,
      path: '/who',
      permission: 'can_access_api',
      handle: ({ context }) => describe(context.principal),
    }),
    endpoint({ ...probe, path: '/models', permission: 'can_manage_models', handle: () => 'ok' }),
    endpoint({ ...probe, path: '/config', permission: 'can_edit_config', handle: () => 'ok' }),
    endpoint({
      ...probe,
      path: '/socket',
      permission: 'can_access_api',
      handle({ context, request, server }) {
        const open = (socket: ServerWebSocket<unknown>) =>
          socket.send(JSON.stringify(describe(context.principal)))
        server?.upgrade(request, { data: { open } })
      },
    }),
  ]
  return createTestApp(endpoints, { auth, config })
}

function describe(principal: Awaited<ReturnType<Auth['authenticate']>>) {
  return { ...principal, permissions: [...principal.permissions].sort() }
}

async function sendTo(
  url: URL,
  { method = 'GET', headers = {}, bearer, json }: SendOptions = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(json === undefined ? {} : { body: typeof json === 'string' ? json : JSON.stringify(json) }),
  })
  const text = await response.text()
  return { status: response.status, body: parse(text), headers: response.headers }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export const audience = 'sluice'

/** Valid claims; a test changes one. */
export function claims(world: World, spoiled: Record<string, unknown> = {}) {
  const nowS = Math.floor(world.now().getTime() / 1000)
  return {
    iss: world.config.jwt.issuer,
    aud: audience,
    sub: 'ann',
    groups: ['users'],
    iat: nowS,
    exp: nowS + 600,
    ...spoiled,
  }
}

export async function answerTo(world: World, bearer: string) {
  const { status, body } = await world.send('/who', { bearer })
  return status === 200 ? 'accepted' : `${status} ${Object(body).error.message}`
}
