import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { inheritedEnvironment, stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { openRecordedDatabase, type RecordedDatabase } from '#test/support/recorded-statements.ts'

let database: RecordedDatabase
let gateway: Gateway

beforeAll(async () => {
  database = await openRecordedDatabase()
  gateway = await startGateway({ database })
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
  await stopProcesses()
})

const grantType = 'urn:ietf:params:oauth:grant-type:device_code'

async function post(path: string, fields: Record<string, string>) {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    body: new URLSearchParams(fields),
  })
  return { status: response.status, body: asRecord(await response.json()) }
}

async function begin(name = 'laptop') {
  const { status, body } = await post('/login/device', { device_name: name })
  expect(status).toBe(200)
  return { deviceCode: String(body['device_code']), userCode: String(body['user_code']), body }
}

const poll = (deviceCode: string, fields: Record<string, string> = {}) =>
  post('/login/device/token', { grant_type: grantType, device_code: deviceCode, ...fields })

/** As the page does it. */
async function decide(code: string, approve: boolean, subject = 'ann', groups = ['users']) {
  const authorization = `Bearer ${await gateway.token(groups, subject)}`
  return gateway.request(`/v1/device-logins/${code}`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ approve }),
  })
}

/** Lets the interval between two polls pass. */
async function passInterval(): Promise<void> {
  await gateway.deps.database.drizzle.execute(
    sql`update login_code set polled_at = polled_at - interval '5 seconds'`,
  )
}

test('an approved device gets a key of the user, once', async () => {
  const { deviceCode, userCode, body } = await begin('laptop of Ann')
  expect(body).toMatchObject({
    user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
    verification_uri: `${gateway.url}/console/device`,
    verification_uri_complete: `${gateway.url}/console/device?user_code=${userCode}`,
    expires_in: 600,
    interval: 5,
  })
  expect(await poll(deviceCode)).toMatchObject({
    status: 400,
    body: { error: 'authorization_pending' },
  })
  const shown = await gateway.request(
    `/v1/device-logins/${userCode.toLowerCase().replace('-', '')}`,
  )
  expect(await shown.json()).toMatchObject({ name: 'laptop of Ann', status: 'pending' })
  expect((await decide(userCode, true)).status).toBe(200)
  const { status, body: token } = await poll(deviceCode)
  expect([status, token]).toMatchObject([200, { token_type: 'Bearer' }])
  const key = String(token['access_token'])
  const me = await fetch(`${gateway.url}/v1/me`, { headers: { 'x-api-key': key } })
  expect(await me.json()).toMatchObject({ subject: 'ann', api_key_id: token['key_id'] })
  const days = (Date.parse(String(token['expires_at'])) - Date.now()) / 86_400_000
  expect(Math.round(days)).toBe(90)
  expect(await poll(deviceCode)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
})

test('of concurrent polls one gets the key', async () => {
  const { deviceCode, userCode } = await begin()
  await decide(userCode, true)
  const all = await Promise.all([1, 2, 3, 4].map(() => poll(deviceCode)))
  expect(all.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400])
})

test('a denied device gets none', async () => {
  const { deviceCode, userCode } = await begin()
  await decide(userCode, false)
  expect(await poll(deviceCode)).toMatchObject({ status: 400, body: { error: 'access_denied' } })
  expect((await decide(userCode, true)).status).toBe(404)
})

test('a decision is final', async () => {
  const { deviceCode, userCode } = await begin()
  expect((await decide(userCode, true, 'ann')).status).toBe(200)
  expect((await decide(userCode, true, 'mallory')).status).toBe(404)
  const { body } = await poll(deviceCode)
  const headers = { 'x-api-key': String(body['access_token']) }
  const me = await fetch(`${gateway.url}/v1/me`, { headers })
  expect(await me.json()).toMatchObject({ subject: 'ann' })
})

test('a device that polls too often slows down', async () => {
  const { deviceCode } = await begin()
  const errorOf = async () => (await poll(deviceCode)).body['error']
  expect(await errorOf()).toBe('authorization_pending')
  expect(await errorOf()).toBe('slow_down')
  await passInterval()
  expect(await errorOf()).toBe('authorization_pending')
})

test('an expired login can be neither approved nor used', async () => {
  const expire = () =>
    gateway.deps.database.drizzle.execute(
      sql`update login_code set expires_at = now() - interval '1 second'`,
    )
  const [waiting, approved] = [await begin(), await begin()]
  await decide(approved.userCode, true)
  await expire()
  expect((await decide(waiting.userCode, true)).status).toBe(404)
  for (const { deviceCode } of [waiting, approved]) {
    expect((await poll(deviceCode)).body['error']).toBe('expired_token')
  }
})

test('codes that are unknown, expired or decided look the same and cost the same statements', async () => {
  const [expired, decided] = [await begin(), await begin()]
  await database.drizzle.execute(
    sql`update login_code set expires_at = now() - interval '1 second'
      where user_code = ${expired.userCode.replace('-', '')}`,
  )
  await decide(decided.userCode, false, 'bob')
  const seen = (method: 'GET' | 'POST', userCode: string) => {
    const code = userCode.replace('-', '')
    return database.statementsOf(async () => {
      const response = await (method === 'POST'
        ? decide(code, true, 'carol')
        : gateway.request(`/v1/device-logins/${code}`))
      return [response.status, asRecord(asRecord(await response.json())['error'])['message']]
    }, code)
  }
  for (const method of ['GET', 'POST'] as const) {
    const unknown = await seen(method, 'BCDF-GHJK')
    expect(unknown).toMatchObject({
      result: [404, expect.any(String)],
      statements: [expect.any(String)],
    })
    expect(await seen(method, expired.userCode)).toEqual(unknown)
  }
  expect(await seen('POST', decided.userCode)).toEqual(await seen('POST', 'BCDF-GHJK'))
})

test('the code that a user types gives a device nothing', async () => {
  const { userCode } = await begin()
  await decide(userCode, true)
  expect((await poll(userCode)).body['error']).toBe('invalid_grant')
})

test('a user who was disabled after the approval gives no key', async () => {
  const { deviceCode, userCode } = await begin()
  await decide(userCode, true, 'leaver')
  const admin = { authorization: `Bearer ${await gateway.token(['admins'], 'root')}` }
  const users = await gateway.request('/v1/users?q=leaver', { headers: admin })
  const [user] = asRecord(await users.json())['data'] as { id: string }[]
  await gateway.request(`/v1/users/${user?.id}`, {
    method: 'PATCH',
    headers: { ...admin, 'content-type': 'application/json' },
    body: JSON.stringify({ disabled: true }),
  })
  const { status, body } = await poll(deviceCode)
  expect([status, body['error']]).toEqual([400, 'access_denied'])
})

test('an API key approves no device', async () => {
  const made = await gateway.request('/v1/api-keys', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"name":"k"}',
  })
  const { userCode } = await begin()
  const refused = await fetch(`${gateway.url}/v1/device-logins/${userCode}`, {
    method: 'POST',
    headers: {
      'x-api-key': String(asRecord(await made.json())['key']),
      'content-type': 'application/json',
    },
    body: '{"approve":true}',
  })
  expect(refused.status).toBe(403)
})

test.each([
  [{ grant_type: 'password' }, 'unsupported_grant_type'],
  [{ device_code: 'x' }, 'invalid_grant'],
  [{ device_code: '' }, 'invalid_grant'],
])('a poll with %j is refused in the shape of OAuth', async (fields, error) => {
  const answer = await poll('none', fields)
  expect(answer).toMatchObject({
    status: 400,
    body: { error, error_description: expect.any(String) },
  })
})

test('the name of a device is one short line', async () => {
  const { userCode } = await begin(`a\nb\u202e${'x'.repeat(200)}`)
  const { name } = asRecord(await (await gateway.request(`/v1/device-logins/${userCode}`)).json())
  expect(name).toBe(`a b ${'x'.repeat(76)}`)
})

describe('limits', () => {
  test('a user who guesses codes is stopped', async () => {
    const headers = { authorization: `Bearer ${await gateway.token(['users'], 'guesser')}` }
    const statuses = []
    for (let attempt = 0; attempt < 12; attempt++) {
      const { status } = await gateway.request('/v1/device-logins/BBBB-BBBB', { headers })
      statuses.push(status)
    }
    expect(statuses).toEqual([...Array(10).fill(404), 429, 429])
  })

  test('an address can begin 20 logins, and the table holds 1,000', async () => {
    const other = await startGateway()
    try {
      const beginOnce = () =>
        fetch(`${other.url}/login/device`, { method: 'POST', body: new URLSearchParams() })
      const statuses = []
      for (let count = 0; count < 21; count++) statuses.push((await beginOnce()).status)
      expect(statuses).toEqual([...Array(20).fill(200), 429])
      await other.deps.database.drizzle.execute(sql`
        insert into login_code (hash, kind, user_code, created_at, expires_at)
        select decode(md5(n::text), 'hex'), 'device', 'X' || n, now(), now() + interval '1 hour'
        from generate_series(1, 980) n`)
      await expect(other.deps.devices.begin('one more')).rejects.toMatchObject({
        kind: 'rate_limit_exceeded',
      })
    } finally {
      await other.stop()
    }
  })
})

test('the commands login and logout store a key for this user alone, and revoke it', async () => {
  const other = await startGateway()
  const folder = temporaryFolder()
  const run = (...args: string[]) =>
    Bun.spawn(
      [process.execPath, join(import.meta.dir, '../../src/main.ts'), ...args, '--url', other.url],
      {
        env: { ...inheritedEnvironment(), XDG_CONFIG_HOME: folder },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
  const authorization = `Bearer ${await other.token(['users'], 'ann')}`
  try {
    const login = run('login')
    let printed = ''
    const reading = (async () => {
      for await (const chunk of login.stderr) {
        printed += Buffer.from(chunk).toString()
        const [, code] = /user_code=(\S+)/.exec(printed) ?? []
        if (code === undefined || printed.includes('Logged in')) continue
        await fetch(`${other.url}/v1/device-logins/${code}`, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/json' },
          body: '{"approve":true}',
        })
      }
    })()
    expect(await login.exited).toBe(0)
    await reading
    const file = join(folder, 'sluice/credentials.json')
    expect(printed).toContain(file)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(folder, 'sluice')).mode & 0o777).toBe(0o700)
    const key = (await run('login', '--print').stdout.text()).trim()
    const me = () => fetch(`${other.url}/v1/me`, { headers: { 'x-api-key': key } })
    expect(await (await me()).json()).toMatchObject({ subject: 'ann' })
    expect(await run('logout').exited).toBe(0)
    expect((await me()).status).toBe(401)
    const again = run('logout')
    expect([await again.exited, await again.stderr.text()]).toEqual([
      1,
      `There is no key for ${other.url}.\n`,
    ])
  } finally {
    await other.stop()
  }
})
