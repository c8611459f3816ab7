import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { listEndpoints } from '#app.ts'
import type { Permission } from '#auth/permissions.ts'
import { permissionNames } from '#auth/permissions.ts'
import { asRecord, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'

/** The whole route table: the declared permission of each route is enforced. */

/** The only public routes; metrics have their own rule. */
const probes = ['/', '/compat', '/livez', '/readyz']
const pages = ['/docs', '/openapi.json', '/scalar']
/** What a browser needs before a login. */
const loginPaths = ['/login', '/login/backchannel-logout', '/login/callback', '/logout']
const devicePaths = ['/login/device', '/login/device/token', '/login/device/revoke']
const applicationPaths = ['/compat/protocol', '/compat/.well-known/oauth-authorization-server']
const browserPaths = [...devicePaths, '/v1/session', '/console', '/console/*', ...loginPaths]
const publicPaths = [
  ...probes,
  ...pages,
  ...browserPaths,
  ...applicationPaths,
  '/docs/assets/:hash/:name',
  '/metrics',
]

/** Every kind of principal, by group: each permission alone, and all together. */
const groups: Readonly<Record<string, Permission[]>> = {
  strangers: [],
  callers: ['can_access_api'],
  ...Object.fromEntries(
    permissionNames
      .filter((name) => name !== 'can_access_api')
      .map((name) => [`only-${name.replaceAll('_', '-')}`, ['can_access_api', name]]),
  ),
  all: [...permissionNames],
}

type Caller = { name: string; headers: Record<string, string>; permissions: readonly Permission[] }
const nobody: Caller = { name: 'nobody', headers: {}, permissions: [] }

let gateway: Gateway
let callers: readonly Caller[]

beforeAll(async () => {
  gateway = await startGateway({ groups: { ...groups } })
  const made = await Promise.all(Object.keys(groups).map((group) => makeCallers(group)))
  callers = made.flat()
})
afterAll(() => gateway.stop())

/** The same user by token and by API key. */
async function makeCallers(group: string): Promise<Caller[]> {
  const subject = `one of ${group}`
  const ask = async (path: string, groupOfToken: string, init: RequestInit = {}) => {
    const authorization = `Bearer ${await gateway.token([groupOfToken], subject)}`
    return gateway.request(path, { ...init, headers: { authorization, ...init.headers } })
  }
  const made = await ask('/v1/api-keys', 'callers', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: group }),
  })
  const key = String(asRecord(await made.json())['key'])
  // Who makes a key needs a permission; from here on the user has those of the group alone.
  await ask('/v1/models', group)
  const permissions = groups[group] ?? []
  const token = await gateway.token([group], subject)
  return [
    { name: `${group} with a token`, headers: { authorization: `Bearer ${token}` }, permissions },
    { name: `${group} with an API key`, headers: { 'x-api-key': key }, permissions },
  ]
}

function callerNamed(wanted: string): Caller {
  const found = callers.find(({ name }) => name === wanted)
  if (found === undefined) throw new Error(`there is no caller ${wanted}`)
  return found
}

type Route = { method: string; path: string; permission: unknown }

function listRoutes(): Route[] {
  return listEndpoints(gateway.deps).map(({ method, path, permission }) => ({
    method,
    path,
    permission,
  }))
}

const closedRoutes = () => listRoutes().filter(({ path }) => !publicPaths.includes(path))

/** Requests a missing resource, without a body, so that little is executed. */
function ask({ method, path }: Route, headers: Record<string, string>): Promise<Response> {
  const place = path.replace(/:\w+\??/g, '0198a000-0000-7000-8000-000000000000').replace('*', 'x')
  return fetch(gateway.url + place, { method, headers })
}

/** The status, with the code of a refusal; a stream is cancelled at once. */
async function outcomeOf(answer: Response): Promise<{ status: number; code: unknown }> {
  if (answer.status !== 401 && answer.status !== 403) {
    await answer.body?.cancel()
    return { status: answer.status, code: null }
  }
  const body = asRecord(parseJson(await answer.text()))
  const error = asRecord(body['error'])
  const code = body['err_code'] ?? error['code'] ?? asRecord(error['details'])['error_code']
  return { status: answer.status, code }
}

/** The result for a principal at a route: `401`, `403` or `allowed`. */
async function meet(route: Route, { headers }: Caller): Promise<string> {
  const { status, code } = await outcomeOf(await ask(route, headers))
  // A handler may refuse for reasons of its own, such as a key that asks for another key.
  const isRefused = route.method === 'HEAD' || code === 'permission_denied' || status === 401
  return isRefused && (status === 401 || status === 403) ? String(status) : 'allowed'
}

function expected({ permission }: Route, { name, permissions }: Caller): string {
  if (name === nobody.name) return '401'
  const demanded = ['can_access_api', permission]
  return demanded.every((one) => permissions.some((own) => own === one)) ? 'allowed' : '403'
}

const requestsAtOnce = 16

/** Requests every route that is not public; returns unexpected results. */
async function findSurprises(caller: Caller): Promise<string[]> {
  const routes = closedRoutes()
  const surprises: string[] = []
  const work = Array.from({ length: requestsAtOnce }, async () => {
    for (let route = routes.pop(); route !== undefined; route = routes.pop()) {
      const met = await meet(route, caller)
      const wanted = expected(route, caller)
      const place = `${route.method} ${route.path}`
      if (met !== wanted) surprises.push(`${place}: ${caller.name} met ${met}, not ${wanted}`)
    }
  })
  await Promise.all(work)
  return surprises
}

test('the table lists every served route', () => {
  const paths = listRoutes().map(({ method, path }) => `${method} ${path}`)
  expect(paths).toContain('POST /v1/responses')
  expect(paths).toContain('GET /v1/models')
  expect(paths).toContain('POST /v1/api-keys')
  expect(paths).toContain('POST /compat/v1/messages')
  expect(new Set(paths).size).toBe(paths.length)
})

test('every route declares a permission or is known to be public', () => {
  const silent = closedRoutes().filter(
    ({ permission }) => !permissionNames.some((name) => name === permission),
  )
  expect(silent).toEqual([])
  const open = listRoutes().filter(({ path }) => publicPaths.includes(path))
  expect([...new Set(open.map(({ path }) => path))].toSorted()).toEqual(publicPaths.toSorted())
  expect(open.filter(({ permission }) => permission !== 'public')).toEqual([])
})

describe('every route allows principals with its permission, and no others', () => {
  test('no credential', async () => expect(await findSurprises(nobody)).toEqual([]))

  const names = Object.keys(groups).flatMap((group) => [
    `${group} with a token`,
    `${group} with an API key`,
  ])
  test.each(names)('%s', async (name) => {
    expect(await findSurprises(callerNamed(name))).toEqual([])
  })
})

test('a refusal has the error shape of its surface on every route', async () => {
  const stranger = callerNamed('strangers with a token')
  for (const route of closedRoutes().filter(({ method }) => method !== 'HEAD')) {
    const place = `${route.method} ${route.path}`
    const unknown = await readFailure(await ask(route, {}), gateway)
    expect([unknown.status, unknown.code], place).toEqual([401, 'missing_credentials'])
    const refused = await readFailure(await ask(route, stranger.headers), gateway)
    expect([refused.status, refused.code], place).toEqual([403, 'permission_denied'])
  }
})

describe('another method than those of a path', () => {
  const methods = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']
  const stranger = () => callerNamed('strangers with a token').headers

  test('is refused on every path, with the methods that it has', async () => {
    const paths = new Set(listRoutes().map(({ path }) => path))
    expect(paths.size).toBeGreaterThan(80)
    for (const path of paths) {
      const answers = await Promise.all(
        methods.map(async (method) => {
          const answer = await ask({ method, path, permission: null }, stranger())
          await answer.body?.cancel()
          return { method, status: answer.status, allow: answer.headers.get('allow') }
        }),
      )
      const [refused, served] = [true, false].map((is) =>
        answers.filter(({ status }) => is === (status === 405)),
      )
      expect(refused, path).not.toBeEmpty()
      const methodsServed = served?.map(({ method }) => method).join(', ')
      for (const { allow } of refused ?? []) expect(allow, path).toBe(methodsServed ?? null)
    }
  })

  test.each([
    ['PUT', '/v1/responses', 'GET, HEAD, POST'],
    ['POST', '/v1/models/org%2Flarge?x=1', 'GET, HEAD'],
    ['DELETE', '/v1/files/search/', 'GET, HEAD, POST'],
    ['GET', '/v1/responses/input_tokens', 'POST'],
    ['GET', '/compat/v1/messages', 'POST'],
    ['DELETE', '/compat/v1/messages/count_tokens', 'POST'],
  ])('%s %s has the error shape of its surface', async (method, path, allow) => {
    const failure = await readFailure(await fetch(gateway.url + path, { method }), gateway)
    const { status, code, type, headers } = failure
    expect({ status, code, type }).toEqual({
      status: 405,
      code: 'method_not_allowed',
      type: 'invalid_request_error',
    })
    expect([headers.get('allow'), headers.get('x-should-retry')]).toEqual([allow, 'false'])
    expect(headers.has('request-id')).toBe(path.startsWith('/compat/'))
  })

  test.each(['/v1/chat/completions', '/v1/files/x/y/z', '/compat/v1/nope', '/nope'])(
    '%s is unknown to every method',
    async (path) => {
      for (const method of methods) {
        const answer = await fetch(gateway.url + path, { method })
        expect([answer.status, answer.headers.get('allow')]).toEqual([404, null])
      }
    },
  )
})

describe('public routes', () => {
  test.each(probes)('%s responds without a credential', async (path) => {
    const answer = await fetch(gateway.url + path)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({ status: 'ok' })
  })

  test.each(pages)('%s is served without a credential', async (path) => {
    const answer = await fetch(gateway.url + path)
    expect(answer.status).toBe(200)
    expect(await answer.text()).not.toBe('')
  })
})

/** Names of fields by which a request could choose what the gateway starts, opens or connects to. */
const powerful =
  /^(command|cmd|args|argv|arguments|env|environment|executable|program|path|folder|directory|url|uri|host|proxy|source|api_base|upstream|headers)$|_(url|uri|path|command|host|base|file)$/
/** Of endpoints for every user, with the reason why each is harmless. */
const harmless: Readonly<Record<string, RegExp>> = {
  // Addresses that `outbound` checks; arguments of function calls; headers for servers of the caller.
  'image_url file_url arguments server_url headers': /^\/v1\/responses/,
  'image_url file_url arguments': /^\/v1\/(responses\/compact|conversations)/,
  'source url': /^\/compat\//,
  url: /^\/v1\/webhook_endpoints/,
  // A filter of a report.
  upstream: /^\/v1\/usage/,
}

function fieldsOf(schema: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(schema)) for (const each of schema) fieldsOf(each, found)
  else if (typeof schema === 'object' && schema !== null) {
    for (const [key, value] of Object.entries(schema)) {
      if (key === 'properties') for (const name of Object.keys(value)) found.add(name)
      fieldsOf(value, found)
    }
  }
  return found
}

test('no endpoint for every user takes a command, a path or an upstream', () => {
  const forEveryone = listEndpoints(gateway.deps).filter(({ permission }) =>
    ['public', 'can_access_api'].includes(permission),
  )
  const fields = forEveryone.map(({ method, path, query, body }) => {
    const names = fieldsOf([query, Object(body).schema, Object(body).content])
    return { route: `${method} ${path}`, path, names: [...names].filter((n) => powerful.test(n)) }
  })
  const surprising = fields.filter(
    ({ path, names }) => names.length > 0 && harmless[names.join(' ')]?.test(path) !== true,
  )
  expect(surprising).toEqual([])
})
