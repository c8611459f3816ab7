import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { asRecord, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** The steps of an application, as the protocol that its vendor's own gateway serves describes them. */

const received: { path: string; type: string | null; key: string | null; body: string }[] = []
let collectorStatus = 200
const collector = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { headers } = request
    const path = new URL(request.url).pathname
    const body = await request.text()
    received.push({ path, type: headers.get('content-type'), key: headers.get('x-key'), body })
    return new Response(null, { status: collectorStatus })
  },
})
const staff = {
  env: { B: '1', A: '2' },
  availableModels: ['x'],
  permissions: { deny: ['WebFetch'] },
}
let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway({
    appGateway: {
      settings: [
        { groups: ['staff'], settings: staff },
        { groups: ['users'], settings: {} },
      ],
      telemetryUrl: `http://127.0.0.1:${collector.port}/`,
      telemetryHeaders: { 'x-key': 'collector-key' },
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await collector.stop(true)
})

const as = async (...groups: string[]) => ({
  authorization: `Bearer ${await gateway.token(groups, groups.join('-'))}`,
})

/** The answers of the endpoints that the metadata names. */
async function signInForms() {
  const base = `${gateway.url}/compat`
  const response = await fetch(`${base}/.well-known/oauth-authorization-server`)
  const metadata = asRecord(await response.json())
  const form = async (endpoint: string, fields: Record<string, string>) => {
    const url = String(metadata[endpoint])
    expect(new URL(url).origin).toBe(new URL(base).origin)
    const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(fields) })
    return { status: answer.status, body: asRecord(await answer.json()) }
  }
  return { base, metadata, form }
}

const updateRows = (statement: string) => gateway.deps.database.drizzle.execute(statement)

/** Approves a device; the grant of its token. */
async function approveDevice(form: Awaited<ReturnType<typeof signInForms>>['form']) {
  const { body: begun } = await form('device_authorization_endpoint', { surface: 'claude_code' })
  const code = String(begun['device_code'])
  const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: code }
  expect(await form('token_endpoint', grant)).toMatchObject({
    status: 400,
    body: { error: 'authorization_pending' },
  })
  await gateway.request(`/v1/device-logins/${begun['user_code']}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ approve: true }),
  })
  await updateRows(`update login_code set polled_at = polled_at - interval '5 seconds'`)
  return grant
}

test('an application signs in by the metadata, works with one bearer, and signs out', async () => {
  const { base, form } = await signInForms()
  const grant = await approveDevice(form)
  const { body: token } = await form('token_endpoint', grant)
  expect(token).toMatchObject({ token_type: 'Bearer', expires_in: expect.any(Number) })
  const bearer = { authorization: `Bearer ${token['access_token']}` }
  const call = (path: string, init: RequestInit = {}) =>
    fetch(base + path, { ...init, headers: { ...bearer, 'content-type': 'application/json' } })
  const message = JSON.stringify({
    model: 'demo',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'hi' }],
    unknown_field: 1,
  })
  expect((await call('/v1/messages?beta=true', { method: 'POST', body: message })).status).toBe(200)
  expect((await call('/v1/messages/count_tokens', { method: 'POST', body: message })).status).toBe(
    200,
  )
  expect((await call('/v1/models?limit=1000')).status).toBe(200)
  expect((await call('/managed/settings')).status).toBe(200)
  expect((await call('/v1/metrics', { method: 'POST', body: '{}' })).status).toBe(200)

  expect(await form('token_endpoint', { grant_type: 'refresh_token', refresh_token: 'x' })).toEqual(
    {
      status: 401,
      body: { error: 'invalid_grant', error_description: expect.any(String) },
    },
  )
  const revocation = { token: String(token['access_token']) }
  expect((await form('revocation_endpoint', revocation)).status).toBe(200)
  expect((await form('revocation_endpoint', revocation)).status).toBe(200)
  expect((await form('revocation_endpoint', { token: 'unknown' })).status).toBe(200)
  const refused = await call('/managed/settings')
  expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([401, 'false'])
  expect(await refused.json()).toMatchObject({ error: { type: 'authentication_error' } })
})

describe('a refresh token', () => {
  const open = async () => {
    const { base, metadata, form } = await signInForms()
    expect(metadata['grant_types_supported']).toContain('refresh_token')
    const { body: first } = await form('token_endpoint', await approveDevice(form))
    const refresh = (token: unknown) =>
      form('token_endpoint', { grant_type: 'refresh_token', refresh_token: String(token) })
    const statusOf = async (token: unknown) => {
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(`${base}/v1/models`, { headers })).status
    }
    const setKey = (columns: string) =>
      updateRows(`update api_key set ${columns} where id = '${first['key_id']}'`)
    return { first, form, refresh, statusOf, setKey }
  }
  const refused = { status: 401, body: { error: 'invalid_grant' } }

  test('renews the key, which stays the same one, also after its expiry', async () => {
    const { first, refresh, statusOf, setKey } = await open()
    const { status, body: second } = await refresh(first['refresh_token'])
    expect([status, second['key_id'], second['token_type']]).toEqual([
      200,
      first['key_id'],
      'Bearer',
    ])
    expect(second['access_token']).not.toBe(first['access_token'])
    expect(await statusOf(second['access_token'])).toBe(200)
    // What still runs with the former secret goes on for a while.
    expect(await statusOf(first['access_token'])).toBe(200)
    await setKey(`expires_at = now() - interval '29 days'`)
    const { body: third } = await refresh(second['refresh_token'])
    expect(third['expires_in']).toBeGreaterThan(3_600)
    expect(await statusOf(third['access_token'])).toBe(200)
    await setKey(`expires_at = now() - interval '31 days'`)
    expect(await refresh(third['refresh_token'])).toMatchObject(refused)
  })

  test('that was used before revokes the key', async () => {
    const { first, refresh, statusOf, setKey } = await open()
    const { body: second } = await refresh(first['refresh_token'])
    await setKey(`previous_expires_at = now() - interval '1 second'`)
    expect(await refresh(first['refresh_token'])).toMatchObject(refused)
    expect(await statusOf(second['access_token'])).toBe(401)
    expect(await refresh(second['refresh_token'])).toMatchObject(refused)
  })

  test('does not work for other texts, users without the API, and after the sign-out', async () => {
    const { first, form, refresh, statusOf } = await open()
    const sealed = String(first['refresh_token'])
    const altered = sealed.slice(0, -4) + (sealed.endsWith('AAAA') ? 'BBBB' : 'AAAA')
    for (const text of ['', 'x', altered, first['access_token']]) {
      expect(await refresh(text)).toMatchObject(refused)
    }
    await updateRows('update app_user set disabled_at = now()')
    expect(await refresh(sealed)).toMatchObject(refused)
    await updateRows('update app_user set disabled_at = null')
    expect((await form('revocation_endpoint', { token: sealed })).status).toBe(200)
    expect(await refresh(sealed)).toMatchObject(refused)
    expect(await statusOf(first['access_token'])).toBe(401)
  })
})

describe('settings', () => {
  const read = async (groups: string[], headers: Record<string, string> = {}) =>
    gateway.request('/compat/managed/settings', {
      headers: { ...(await as(...groups)), ...headers },
    })

  test('are those of the first entry with a group of the user', async () => {
    expect(await (await read(['users', 'staff'])).json()).toMatchObject({ settings: staff })
    expect(await (await read(['users'])).json()).toMatchObject({ settings: {} })
    // Without the permission of a group, nothing is readable.
    const none = await gateway.request('/compat/managed/settings', { headers: await as('admins') })
    expect(none.status).toBe(404)
  })

  test('have the checksum that applications compute, as their tag', async () => {
    const text =
      '{"availableModels":["x"],"env":{"A":"2","B":"1"},"permissions":{"deny":["WebFetch"]}}'
    const checksum = `sha256:${createHash('sha256').update(text).digest('hex')}`
    const first = await read(['staff', 'users'])
    expect(await first.json()).toMatchObject({ uuid: checksum, checksum })
    const tag = `"${checksum}"`
    expect(first.headers.get('etag')).toBe(tag)
    const again = await read(['staff', 'users'], { 'if-none-match': tag })
    expect([again.status, await again.text()]).toEqual([304, ''])
    expect((await read(['staff', 'users'], { 'if-none-match': '*' })).status).toBe(200)
    expect((await read(['users'], { 'if-none-match': tag })).status).toBe(200)
  })
})

describe('telemetry', () => {
  const send = async (
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
  ) =>
    gateway.request('/compat/v1/logs', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(await as('users')), ...headers },
      body,
    })

  test('is forwarded with the user, without the credential', async () => {
    const before = received.length
    const body = JSON.stringify({ resourceLogs: [{ resource: { attributes: [] } }] })
    const zipped = Bun.gzipSync(Buffer.from(body))
    expect((await send(zipped, { 'content-encoding': 'gzip' })).status).toBe(200)
    const [got] = received.slice(before)
    expect(got).toMatchObject({ path: '/v1/logs', type: 'application/json', key: 'collector-key' })
    const text = got?.body ?? ''
    expect(asRecord(parseJson(text))['resourceLogs']).toBeArrayOfSize(1)
    expect(text).toContain('{"key":"sluice.user.groups","value":{"stringValue":"users"}}')
    expect(text).not.toContain('Bearer')
  })

  test('is repeated by its exporter while the collector fails', async () => {
    collectorStatus = 500
    const failed = await send('{}')
    collectorStatus = 200
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([503, '5'])
    expect((await send('{')).status).toBe(400)
    expect((await send('x', { 'content-type': 'application/x-protobuf' })).status).toBe(400)
  })
})

test('safeguards are refused by name where no upstream of the protocol can check them', async () => {
  const refused = await gateway.post('/compat/v1/messages', {
    model: 'demo',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'hi' }],
    safeguards: { mode: 'auto' },
  })
  expect(refused.status).toBe(400)
  expect(await refused.json()).toMatchObject({
    error: { type: 'invalid_request_error', message: expect.stringContaining('safeguards') },
  })
})
