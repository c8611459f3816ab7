import { type Endpoint, endpoint } from '#api/endpoint.ts'
import { apiKeyEndpoints } from '#api-keys/endpoints.ts'
import { auditEndpoints } from '#audit/endpoints.ts'
import { createAudit } from '#audit/store.ts'
import { type Auth, createAuth } from '#auth/auth.ts'
import { userIdOf } from '#auth/principal.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { type Database, openDatabase } from '#db/client.ts'
import { directoryEndpoints } from '#directory/module.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { describedAnswers } from '#test/support/described-answers.ts'
import { createTestApp } from '#test/support/endpoints.ts'
import { signWithSecret } from '#test/support/identity-provider.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** The endpoints of the directory, the audit log and API keys, on a real port. */
export type DirectoryGateway = {
  readonly auth: Auth
  readonly url: string
  /** Advances the clock. */
  pass(ms: number): void
  now(): Date
  /** A token with these groups, newer than all previous ones. */
  token(subject: string, groups: readonly string[], claims?: Record<string, unknown>): string
  /**
   * `how` is a method and a path. The response is validated against the API document. The default
   * credential is that of the administrator `root`.
   */
  send(how: string, options?: SendOptions): Promise<Answer>
  /** The status of a request that needs no more than `can_access_api`. */
  statusOf(bearer: string): Promise<number>
  /** The groups and the permissions of a bearer at this moment. */
  rightsOf(bearer: string): Promise<{ groups: string[]; permissions: string[] }>
  stop(): Promise<void>
}

type SendOptions = {
  bearer?: string | null
  json?: unknown
  headers?: Record<string, string>
}

export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

export type GatewayOptions = { groups?: Config['groups']; keyCacheMs?: number }

const secret = 'a secret that only the tests know, 32+'
/** Long enough that no cache expires during a test. */
const cacheMs = 3_600_000

export const root = userIdOf('root')

export async function startGateway(
  database: Database,
  options: GatewayOptions = {},
): Promise<DirectoryGateway> {
  const config: Config = {
    ...loadConfig({ JWT_SECRET: secret, PORT: '0' }),
    apiKeys: { cacheMs: options.keyCacheMs ?? cacheMs },
    groups: options.groups ?? {},
  }
  let offsetMs = 0
  const now = () => new Date(Date.now() + offsetMs)
  const audit = createAudit({ database, now })
  const auth = await createAuth({ config, database, audit, log: quietLog, now, fetch })
  const who: Endpoint = endpoint({
    method: 'GET',
    path: '/who',
    permission: 'can_access_api',
    tag: 'Operations',
    summary: 'Show the rights of the caller',
    responses: {},
    handle: ({ context }) => renderRights(context.principal),
  })
  const endpoints = [
    ...apiKeyEndpoints({ auth, now }),
    ...directoryEndpoints({ database, auth, audit, config, now }),
    ...auditEndpoints({ audit }),
    who,
  ]
  const app = createTestApp(endpoints, { auth, config }).listen({ hostname: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${app.server?.port}`
  const hold = describedAnswers(endpoints)
  let tokensMade = 0
  const token: DirectoryGateway['token'] = (subject, groups, claims = {}) => {
    const nowS = Math.floor(now().getTime() / 1_000)
    const usual = { sub: subject, groups, iat: nowS, exp: nowS + 3_600 }
    tokensMade += 1
    return signWithSecret(secret, { claims: { ...usual, jti: tokensMade, ...claims } })
  }
  // Reused, so that it updates the groups once.
  const rootToken = token('root', ['admins'], { exp: 4_000_000_000 })
  const send: DirectoryGateway['send'] = async (how, { bearer = rootToken, ...rest } = {}) => {
    const answer = await ask(url + pathOf(how), { method: methodOf(how), bearer, ...rest })
    if (!isCommonFailure(answer)) hold(how, answer.status, answer.body)
    return answer
  }
  const askWho = (bearer: string) => ask(`${url}/who`, { method: 'GET', bearer })
  return {
    auth,
    url,
    now,
    token,
    send,
    pass(ms) {
      offsetMs += ms
    },
    statusOf: async (bearer) => (await askWho(bearer)).status,
    async rightsOf(bearer) {
      const { groups, permissions } = Object((await askWho(bearer)).body)
      return { groups, permissions }
    },
    async stop() {
      await app.stop(true)
      await auth.close()
    },
  }
}

function renderRights({ groups, permissions }: Awaited<ReturnType<Auth['authenticate']>>) {
  return { groups, permissions: [...permissions].sort() }
}

function methodOf(how: string): string {
  return how.split(' ')[0] ?? 'GET'
}

function pathOf(how: string): string {
  return how.slice(how.indexOf(' ') + 1)
}

/** Errors of any request are documented once, not per endpoint. */
function isCommonFailure({ status, body }: Answer): boolean {
  const { code } = Object(body['error'])
  return status === 400 || status === 401 || status >= 500 || code === 'permission_denied'
}

async function ask(
  url: string,
  { method, bearer, json, headers }: SendOptions & { method: string },
): Promise<Answer> {
  const sent =
    json === undefined ? undefined : typeof json === 'string' ? json : JSON.stringify(json)
  const answer = await fetch(url, {
    method,
    headers: {
      ...(bearer == null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : {} }
}

/** `200`, or `409 conflict`: the error code follows. */
export function outcome({ status, body }: Answer): string {
  return status < 400 ? String(status) : `${status} ${Object(body['error']).code}`
}

/** One field of each item of a list. */
export function column({ body }: Answer, name: string): unknown[] {
  return Array.isArray(body['data']) ? body['data'].map((item) => Object(item)[name]) : []
}

/** An API key of this user. */
export async function makeKey(gateway: DirectoryGateway, bearer: string) {
  const answer = await gateway.send('POST /v1/api-keys', { bearer, json: { name: 'k' } })
  return { id: String(answer.body['id']), key: String(answer.body['key']) }
}

/** Another connection to the database; the embedded one has a single connection. */
export async function connectAgain(database: TestDatabase): Promise<Database> {
  const { databaseUrl, dataFolder } = database.place
  if (databaseUrl === undefined) return { ...database, close: async () => {} }
  return openDatabase({ databaseUrl, dataFolder, connectionsMax: 2, log: quietLog })
}

/** Two replicas on one database. */
export async function startReplicas(options: GatewayOptions = {}) {
  const database = await openTestDatabase()
  const second = await connectAgain(database)
  const here = await startGateway(database, options)
  const there = await startGateway(second, options)
  return {
    database,
    here,
    there,
    async stop() {
      await here.stop()
      await there.stop()
      await second.close()
      await database.close()
    },
  }
}
