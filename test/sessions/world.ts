import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type OidcProvider, startOidcProvider } from '#test/support/oidc/provider.ts'
import { createWebBrowser, type WebBrowser } from '#test/support/oidc/web-browser.ts'

/** A gateway whose users log in at a real OpenID provider. */
export type LoginWorld = {
  readonly gateway: Gateway
  readonly provider: OidcProvider
  /** Logs in at the provider; throws if the login does not end in the console. */
  logIn(browser?: WebBrowser, returnTo?: string): Promise<WebBrowser>
  stop(): Promise<void>
}

export async function startLoginWorld(
  options: Parameters<OidcProvider['serve']>[1] & {
    database?: Database
    environment?: Record<string, string>
  } = {},
): Promise<LoginWorld> {
  const provider = await startOidcProvider()
  const { database, environment, ...serving } = options
  const gateway = await startGateway({
    // A change reaches open WebSockets by its notification, not by their next check.
    websocket: { recheckMs: 3_600_000 },
    ...(database === undefined ? {} : { database }),
    environment: {
      SLUICE_LOGIN_ISSUER: provider.issuer,
      SLUICE_LOGIN_CLIENT_ID: provider.clientId,
      SLUICE_LOGIN_CLIENT_SECRET: provider.clientSecret,
      ...environment,
    },
  })
  provider.serve(gateway.url, serving)
  return {
    gateway,
    provider,
    async logIn(browser = createWebBrowser(), returnTo = '/console/') {
      const address = `${gateway.url}/login?return_to=${encodeURIComponent(returnTo)}`
      const isConsole = ({ pathname }: URL) => pathname.startsWith('/console')
      const { visited } = await browser.open(address, { until: isConsole })
      const end = visited.at(-1)
      if (end?.origin !== gateway.url || end.pathname === '/console/login') {
        throw new Error(`the login ended at ${end}`)
      }
      return browser
    },
    async stop() {
      await gateway.stop()
      await provider.stop()
    },
  }
}

/** The body of `GET /v1/session` for a browser. */
export async function sessionOf(browser: WebBrowser, url: string) {
  const response = await browser.call(`${url}/v1/session`)
  const { user, session } = asRecord(await response.json())
  return {
    user: user === null ? null : asRecord(user),
    session: session === null ? null : asRecord(session),
  }
}

const isCallback = ({ pathname }: URL) => pathname === '/login/callback'

/** Logs in up to the callback, which is not opened; `change` alters the request at the provider. */
export async function untilCallback(
  { gateway }: LoginWorld,
  browser: WebBrowser,
  change = (_: URL) => {},
): Promise<URL> {
  const { visited } = await browser.open(`${gateway.url}/login`, {
    until: ({ pathname }) => pathname === '/auth',
  })
  const authorize = visited.at(-1)
  if (authorize === undefined) throw new Error('the login leads nowhere')
  change(authorize)
  const led = await browser.open(authorize.href, { until: isCallback })
  const callback = led.visited.at(-1)
  if (callback === undefined || !isCallback(callback)) throw new Error(`no callback: ${callback}`)
  return callback
}

/** Opens a callback; resolves with the address where the browser ends. */
export async function finish(
  { provider }: LoginWorld,
  browser: WebBrowser,
  callback: URL,
): Promise<string> {
  const isConsole = ({ pathname }: URL) => pathname.startsWith('/console')
  const { visited } = await browser.open(callback.href, {
    until: isConsole,
    from: provider.issuer,
  })
  const end = visited.at(-1)
  return `${end?.pathname}${end?.search}`
}

/** The audit entries of a session, newest first: action, user, address, and the reason or method. */
export async function auditOf({ gateway }: LoginWorld, id: string): Promise<unknown[][]> {
  const filter = { resource: { type: 'session', id } }
  const { items } = await gateway.deps.audit.list(filter, { limit: 10, after: undefined })
  return items.map(({ action, actor, changes: { after } }) => [
    action,
    actor?.userId,
    actor?.clientAddress,
    after?.['reason'] ?? after?.['method'],
  ])
}

export async function rowOf(
  { gateway }: LoginWorld,
  id: string,
): Promise<Record<string, unknown> | undefined> {
  const rows = await gateway.deps.database.drizzle.execute(
    sql`select * from login_session where id = ${id}`,
  )
  return rows[0]
}
