import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { hasScope, scopeOf } from '#api/scope.ts'
import { listEndpoints } from '#app.ts'
import { type Scope, scopeNames } from '#auth/scopes.ts'
import { describeEndpoint } from '#docs/describe-endpoint.ts'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'

/** API keys of an administrator, restricted to scopes, at every endpoint. */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

async function makeKey(scopes: readonly Scope[] | null): Promise<string> {
  const response = await gateway.request('/v1/api-keys', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await gateway.token(['admins'], 'root')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ name: 'k', scopes }),
  })
  return String(asRecord(await response.json())['key'])
}

type Route = { method: string; path: string; scope: Scope | null }

const routes = (): Route[] =>
  listEndpoints(gateway.deps)
    .filter(({ permission, method }) => permission !== 'public' && method !== 'HEAD')
    .map((endpoint) => ({
      method: endpoint.method,
      path: endpoint.path,
      scope: scopeOf(endpoint),
    }))

/** Requests a missing resource, without a body, so that little is executed. */
const ask = ({ method, path }: Route, key: string) => {
  const place = path.replace(/:\w+\??/g, '0198a000-0000-7000-8000-000000000000').replace('*', 'x')
  return fetch(gateway.url + place, { method, headers: { authorization: `Bearer ${key}` } })
}

const lacks = (scope: Scope | null) => `This API key lacks the scope ${scope}.`

/** Routes where a key is not refused exactly if it lacks the scope. */
async function surprisesOf(key: string, held: readonly Scope[]): Promise<string[]> {
  const surprises: string[] = []
  for (const route of routes()) {
    const { method, path, scope } = route
    const answer = await ask(route, key)
    const isMissing = scope !== null && !held.includes(scope)
    if (answer.status !== 403) {
      await answer.body?.cancel()
      if (isMissing) surprises.push(`${method} ${path}: ${answer.status}`)
      continue
    }
    const { code, message } = await readFailure(answer, gateway)
    const isRefused = code === 'permission_denied' && message === lacks(scope)
    if (isRefused !== isMissing) surprises.push(`${method} ${path}: ${message}`)
  }
  return surprises
}

describe('every endpoint refuses a key without its scope, in the shape of its surface', () => {
  test.each(scopeNames.map((scope) => [scope]))('%s', async (scope) => {
    expect(await surprisesOf(await makeKey([scope]), [scope])).toEqual([])
  })

  test('two scopes', async () => {
    const held: Scope[] = ['files', 'speech']
    expect(await surprisesOf(await makeKey(held), held)).toEqual([])
  })

  test('no restriction', async () => {
    expect(await surprisesOf(await makeKey(null), scopeNames)).toEqual([])
  })
})

test('each scope has endpoints, and each tag and permission its scope', () => {
  const endpoints = listEndpoints(gateway.deps)
  expect(endpoints.filter(({ tag }) => !hasScope(tag)).map(({ tag }) => tag)).toEqual([])
  const found = new Set(endpoints.map(scopeOf))
  for (const scope of scopeNames) expect(found).toContain(scope)
  const beyond = endpoints.filter(({ permission }) =>
    ['can_manage_models', 'can_edit_config', 'can_manage_groups'].includes(permission),
  )
  expect(new Set(beyond.map(scopeOf))).toEqual(new Set<Scope>(['admin']))
  expect(endpoints.filter((one) => scopeOf(one) === null).map(({ path }) => path)).toEqual(
    expect.arrayContaining(['/v1/me', '/v1/translations', '/v1/branding/theme', '/livez']),
  )
})

test('the scope is part of the documented operation', () => {
  const byPath = (path: string) => {
    const found = listEndpoints(gateway.deps).find((one) => one.path === path)
    if (found === undefined) throw new Error(`there is no ${path}`)
    return describeEndpoint(found)
  }
  expect(byPath('/v1/embeddings')).toMatchObject({ 'x-scope': 'inference' })
  expect(byPath('/v1/collections')).toMatchObject({ 'x-scope': 'files' })
  expect(byPath('/v1/me')).not.toHaveProperty('x-scope')
})

test('a key without the scope admin has no permission beyond the base permission', async () => {
  const me = async (key: string) => {
    const answer = await fetch(`${gateway.url}/v1/me`, { headers: { 'x-api-key': key } })
    return asRecord(await answer.json())['permissions']
  }
  expect(await me(await makeKey(['inference', 'files']))).toEqual(['can_access_api'])
  expect(await me(await makeKey(['admin']))).toContain('can_manage_groups')
})

describe('a WebSocket', () => {
  test('of responses is refused with a status', async () => {
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const answer = await fetch(`${gateway.url}/v1/responses`, {
      headers: { ...upgrade, 'x-api-key': await makeKey(['speech']) },
    })
    expect(answer.status).toBe(403)
    expect(await answer.text()).toContain(lacks('inference'))
  })

  test('of speech is accepted, and refused with a frame', async () => {
    const key = await makeKey(['inference'])
    const query = `encoding=wav&token=${key}`
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/stt?${query}`)
    const { promise, resolve } = Promise.withResolvers<{ text: string; code: number }>()
    let text = ''
    socket.addEventListener('message', ({ data }) => {
      text += String(data)
    })
    socket.addEventListener('close', ({ code }) => resolve({ text, code }))
    expect(await promise).toMatchObject({
      text: expect.stringContaining(lacks('speech')),
      code: 1008,
    })
  })
})
