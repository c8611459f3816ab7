import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildApp } from '#app.ts'
import { permissionNames } from '#config/schema.ts'
import { isRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'

/** The whole table of routes: who may come in is stated on each, and held. */

/** Open to everyone, and the only ones. */
const publicPaths = ['/', '/compat', '/livez', '/readyz']

let gateway: Gateway
let strangersToken: string

beforeAll(async () => {
  gateway = await startGateway()
  strangersToken = await gateway.token(['strangers'], 'a-stranger')
})
afterAll(() => gateway.stop())

type Route = { method: string; path: string; permission: unknown }

function listRoutes(): Route[] {
  return buildApp(gateway.deps).routes.map(({ method, path, hooks }) => {
    const detail: unknown = hooks?.detail
    return { method, path, permission: isRecord(detail) ? detail['x-permission'] : undefined }
  })
}

const closedRoutes = () => listRoutes().filter(({ path }) => !publicPaths.includes(path))

/** What is asked without a body is refused without one, and as its GET is. */
const toldRoutes = () => closedRoutes().filter(({ method }) => method !== 'HEAD')

/** Asks a route; a WebSocket by its handshake. */
function ask({ method, path }: Route, headers: Record<string, string>): Promise<Response> {
  const place = path.replace(/:\w+\??/g, '0198a000-0000-7000-8000-000000000000').replace('*', 'x')
  const handshake = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  return fetch(gateway.url + place, {
    method: method === 'WS' ? 'GET' : method,
    headers: method === 'WS' ? { ...handshake, ...headers } : headers,
  })
}

test('the table holds what is served', () => {
  const paths = listRoutes().map(({ method, path }) => `${method} ${path}`)
  expect(paths).toContain('POST /v1/responses/')
  expect(paths).toContain('GET /v1/models/')
  expect(paths).toContain('POST /v1/api-keys/')
  expect(paths).toContain('POST /compat/v1/messages')
  expect(new Set(paths).size).toBe(paths.length)
})

test('every route states a permission or is known to be public', () => {
  const silent = closedRoutes().filter(
    ({ permission }) => !permissionNames.some((name) => name === permission),
  )
  expect(silent).toEqual([])
  const open = listRoutes().filter(({ path }) => publicPaths.includes(path))
  expect(open.map(({ path }) => path).toSorted()).toEqual(publicPaths.toSorted())
  expect(open.filter(({ permission }) => permission !== undefined)).toEqual([])
})

test('HEAD is refused as GET is', async () => {
  const heads = closedRoutes().filter(({ method }) => method === 'HEAD')
  expect(heads).not.toEqual([])
  for (const route of heads) {
    expect((await ask(route, {})).status).toBe(401)
    const stranger = await ask(route, { authorization: `Bearer ${strangersToken}` })
    expect(stranger.status).toBe(403)
  }
})

test('every route answers 401 without a credential', async () => {
  for (const route of toldRoutes()) {
    const failure = await readFailure(await ask(route, {}), gateway)
    expect([failure.status, failure.code], `${route.method} ${route.path}`).toEqual([
      401,
      'missing_credentials',
    ])
  }
})

test('every route answers 403 to a caller without can_access_api', async () => {
  for (const route of toldRoutes()) {
    const answer = await ask(route, { authorization: `Bearer ${strangersToken}` })
    const failure = await readFailure(answer, gateway)
    expect([failure.status, failure.code], `${route.method} ${route.path}`).toEqual([
      403,
      'permission_denied',
    ])
  }
})

describe('what is public', () => {
  test.each(publicPaths)('%s answers without a credential', async (path) => {
    const answer = await fetch(gateway.url + path)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({ status: 'ok' })
  })
})
