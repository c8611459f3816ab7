import { afterAll, beforeAll } from 'bun:test'
import { Elysia } from 'elysia'
import { createAudit } from '#audit/audit.ts'
import { createAuth } from '#auth/auth.ts'
import { createBranding } from '#branding/branding.ts'
import { brandingRoutes } from '#branding/routes.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { requestLifecycle } from '#http/request-lifecycle.ts'
import { newId } from '#lib/id.ts'
import { createSealer } from '#sealing/sealer.ts'
import { translationRoutes } from '#translations/routes.ts'
import { createTranslations } from '#translations/translations.ts'
import { openTestDatabase, quietLog, type TestDatabase } from './database.ts'
import { signWithSecret } from './identity-provider.ts'

/** The routes of branding and translations on a real port. */
export type PortalGateway = {
  readonly url: string
  send(who: PortalCaller, how: string, options?: SendOptions): Promise<PortalAnswer>
  stop(): Promise<void>
}

/** By the group of the caller; `nobody` has no credential. */
export type PortalCaller = 'admins' | 'users' | 'strangers' | 'nobody'

export type SentBody = NonNullable<RequestInit['body']>

type SendOptions = {
  /** A text is sent as it is. */
  json?: unknown
  body?: SentBody
  headers?: Record<string, string>
}

export type PortalAnswer = {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly text: string
  /** Empty where the answer is no JSON. */
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
    clock: { now },
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
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(
      requestLifecycle({ log: quietLog, newRequestId: () => newId('req_'), draining: () => false }),
    )
    .use(brandingRoutes({ auth, branding, config }))
    .use(translationRoutes({ auth, translations, config }))
    .listen({ hostname: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${app.server?.port}`
  return {
    url,
    send: (who, how, given) => ask(url, who, { how, ...given }),
    async stop() {
      await app.stop(true)
      await auth.close()
    },
  }
}

/** `how` is a method and a path: `GET /v1/translations`. */
async function ask(
  url: string,
  who: PortalCaller,
  { how, json, body, headers }: SendOptions & { how: string },
): Promise<PortalAnswer> {
  const [method = 'GET', path = '/'] = how.split(' ')
  const sent = json === undefined ? body : typeof json === 'string' ? json : JSON.stringify(json)
  const answer = await fetch(url + path, {
    method,
    headers: {
      ...(who === 'nobody' ? {} : { authorization: `Bearer ${tokenOf(who)}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
  })
  const bytes = await answer.bytes()
  const text = new TextDecoder().decode(bytes)
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  const { status } = answer
  return { status, headers: answer.headers, bytes, text, body: isJson ? JSON.parse(text) : {} }
}

function tokenOf(group: PortalCaller): string {
  const nowS = Math.floor(Date.now() / 1_000)
  const claims = { sub: `one of ${group}`, groups: [group], iat: nowS, exp: nowS + 3_600 }
  return signWithSecret(secret, { claims })
}

/** `409 conflict`, or `200` for what was done. */
export function outcome({ status, body }: PortalAnswer): string {
  return status < 400 ? String(status) : `${status} ${Object(body['error']).code}`
}

/** The status, code and field of a refusal. */
export function told({ status, body }: PortalAnswer): unknown[] {
  const { code, param } = Object(body['error'])
  return [status, code, param]
}

/** One gateway, and the database behind it, for the tests of a file. */
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
