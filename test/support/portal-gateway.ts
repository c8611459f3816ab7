import { afterAll, beforeAll } from 'bun:test'
import { createAudit } from '#audit/store.ts'
import { createAuth } from '#auth/auth.ts'
import { brandingEndpoints } from '#branding/endpoints.ts'
import { createBranding } from '#branding/store.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { createSealer } from '#sealing/sealer.ts'
import { translationEndpoints } from '#translations/endpoints.ts'
import { createTranslations } from '#translations/store.ts'
import { openTestDatabase, type TestDatabase } from './database.ts'
import { createTestApp } from './endpoints.ts'
import { signWithSecret } from './identity-provider.ts'
import { quietLog } from './quiet-log.ts'

/** Branding and translations on a real port. */
export type PortalGateway = {
  readonly url: string
  /** `endpoint` is a method and a path: `GET /v1/translations`. */
  send(user: PortalUser, endpoint: string, options?: SendOptions): Promise<PortalResponse>
  stop(): Promise<void>
}

/** Named by their group; `unpermitted` have no permission, `anonymous` no credential. */
export type PortalUser = 'admins' | 'users' | 'unpermitted' | 'anonymous'

export type SentBody = NonNullable<RequestInit['body']>

type SendOptions = {
  /** A string is sent verbatim. */
  json?: unknown
  body?: SentBody
  headers?: Record<string, string>
}

export type PortalResponse = {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly text: string
  /** Empty unless the response is JSON. */
  readonly body: Record<string, unknown>
}

export type PortalOptions = {
  branding?: Partial<Config['branding']>
  translations?: Partial<Config['translations']>
}

const secret = 'a secret that only the tests know, 32+'

export async function startPortalGateway(
  database: Database,
  options: PortalOptions = {},
): Promise<PortalGateway> {
  const config = loadConfig({ JWT_SECRET: secret, PORT: '0' })
  const now = () => new Date()
  const auth = await createAuth({
    audit: createAudit({ database, now }),
    config,
    database,
    log: quietLog,
    now,
    fetch,
  })
  const sealer = await createSealer({ sealKeys: undefined, database })
  const branding = createBranding(database, {
    settings: { ...config.branding, ...options.branding },
    sealer,
    now,
  })
  const translations = createTranslations(database, {
    settings: { ...config.translations, ...options.translations },
    now,
  })
  const endpoints = [
    ...brandingEndpoints({ auth, branding }),
    ...translationEndpoints({ translations }),
  ]
  const app = createTestApp(endpoints, { auth, config }).listen({ hostname: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${app.server?.port}`
  return {
    url,
    send: (user, endpoint, sendOptions) => sendRequest(url, user, { endpoint, ...sendOptions }),
    async stop() {
      await app.stop(true)
      await auth.close()
    },
  }
}

async function sendRequest(
  url: string,
  user: PortalUser,
  { endpoint, json, body, headers }: SendOptions & { endpoint: string },
): Promise<PortalResponse> {
  const [method = 'GET', path = '/'] = endpoint.split(' ')
  const sent = json === undefined ? body : typeof json === 'string' ? json : JSON.stringify(json)
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(user === 'anonymous' ? {} : { authorization: `Bearer ${tokenOf(user)}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
  })
  const bytes = await response.bytes()
  const text = new TextDecoder().decode(bytes)
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  const { status } = response
  return { status, headers: response.headers, bytes, text, body: isJson ? JSON.parse(text) : {} }
}

function tokenOf(group: PortalUser): string {
  const nowS = Math.floor(Date.now() / 1_000)
  const claims = { sub: `member of ${group}`, groups: [group], iat: nowS, exp: nowS + 3_600 }
  return signWithSecret(secret, { claims })
}

/** `200`, or `409 conflict`: the error code follows. */
export function outcome({ status, body }: PortalResponse): string {
  return status < 400 ? String(status) : `${status} ${Object(body['error']).code}`
}

/** The status, code and field of an error response. */
export function errorOf({ status, body }: PortalResponse): unknown[] {
  const { code, param } = Object(body['error'])
  return [status, code, param]
}

/** One gateway and its database for all tests of a file. */
export function usePortalGateway(options: PortalOptions = {}) {
  const world: { gateway: PortalGateway; database: TestDatabase } = Object.create(null)
  beforeAll(async () => {
    world.database = await openTestDatabase()
    world.gateway = await startPortalGateway(world.database, options)
  })
  afterAll(async () => {
    await world.gateway.stop()
    await world.database.close()
  })
  return world
}
