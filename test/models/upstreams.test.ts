import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'

/** `/v1/upstreams`: what a worker knows, and taking upstreams out of service. */

let database: TestDatabase
beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(() => database.close())

const gateways: Gateway[] = []
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop()
  await stopUpstreams()
})

/** The same two upstreams for any number of gateways. */
async function open(count = 1, options: GatewayOptions = {}) {
  const upstreams = [await upstreamThat({ body: whole }), await upstreamThat({ body: whole })]
  const start = () =>
    startGateway({
      ...options,
      database,
      upstream: upstreams.map(({ baseUrl }) => ({ url: baseUrl, models: [] })),
      model: [{ name: 'm', upstreams: ['upstream-0', 'upstream-1'] }],
      retry: { backoffMs: 1 },
      // On a busy machine the tests would wait long enough for checks.
      health: { probe: false },
    })
  for (let index = 0; index < count; index++) gateways.push(await start())
  const [first, second] = gateways
  if (first === undefined) throw new Error('no gateway')
  return { upstreams, first, second: second ?? first }
}

async function manage(gateway: Gateway, path: string, method = 'GET', groups = ['admins']) {
  const headers = { authorization: `Bearer ${await gateway.token(groups, 'operator')}` }
  const response = await gateway.request(`/v1/upstreams${path}`, { method, headers })
  return { status: response.status, body: Object(await response.json()) }
}

async function ask(gateway: Gateway): Promise<number> {
  const response = await gateway.post('/v1/responses', { model: 'm', input: 'Hi', store: false })
  await response.text()
  return response.status
}

const counts = (upstreams: readonly ReplayUpstream[]) =>
  upstreams.map(({ requests }) => requests.length)

describe('the list', () => {
  test('shows state, load, latency and failures of each upstream and model', async () => {
    const { upstreams, first } = await open()
    expect(await ask(first)).toBe(200)
    upstreams[0]?.answer({ status: 500 })
    for (let round = 0; round < 4; round++) await ask(first)
    const { body } = await manage(first, '')
    expect(body.worker).toBe(String(process.pid))
    const [failing, other] = body.data
    expect(failing).toMatchObject({
      name: 'upstream-0',
      api: 'chat',
      state: 'available',
      in_flight: 0,
      requests: 4,
      failures: 3,
      last_failure: { kind: 'upstream_error' },
    })
    expect(failing.models).toMatchObject([
      { model: 'm', state: 'ejected', consecutive_failures: 3, ejections: 1 },
    ])
    expect(Date.parse(failing.models[0].ejected_until)).toBeGreaterThan(Date.now() - 60_000)
    expect(failing.models[0].response_ms).toBeGreaterThanOrEqual(0)
    expect(other).toMatchObject({ state: 'available', requests: 4, failures: 0 })
    expect(first.logLines.filter((line) => line.includes('upstream ejected'))).toHaveLength(1)
  })

  test('shows requests in progress', async () => {
    const { upstreams, first } = await open()
    upstreams[0]?.answer({ ending: 'silent' })
    const aborting = new AbortController()
    const asked = first
      .request('/v1/responses', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', input: 'Hi', store: false }),
        signal: aborting.signal,
      })
      .catch(() => null)
    await upstreams[0]?.until(({ requests }) => requests.length === 1)
    expect((await manage(first, '')).body.data[0].in_flight).toBe(1)
    aborting.abort()
    await asked
    await eventually(
      'its slot is free',
      async () => (await manage(first, '')).body.data[0].in_flight === 0,
    )
  })

  test('has models without requests so far', async () => {
    const { first } = await open()
    expect((await manage(first, '')).body.data[1].models).toMatchObject([
      { model: 'm', state: 'available', first_event_ms: null, response_ms: null },
    ])
  })

  test('is for those who manage models', async () => {
    const { first } = await open()
    for (const [path, method] of [
      ['', 'GET'],
      ['/upstream-0/drain', 'POST'],
      ['/upstream-0/drain', 'DELETE'],
    ] as const) {
      expect((await manage(first, path, method, ['users'])).status).toBe(403)
    }
  })

  test('has its numbers in the metrics too', async () => {
    const { first } = await open()
    await ask(first)
    const metrics = await first.deps.scrapeMetrics('prometheus')
    expect(metrics).toMatch(/sluice_upstream_attempts_total\{upstream="upstream-0".*\} 1\n/)
    expect(metrics).toMatch(
      /sluice_upstream_state\{upstream="upstream-0",state="available".*\} 1\n/,
    )
    expect(metrics).toMatch(/sluice_upstream_in_flight\{upstream="upstream-0".*\} 0\n/)
  })
})

describe('a drain', () => {
  test('takes an upstream out of service, and back', async () => {
    const { upstreams, first } = await open()
    const drained = await manage(first, '/upstream-0/drain', 'POST')
    expect(drained.body).toMatchObject({ name: 'upstream-0', state: 'draining' })
    expect(Date.parse(drained.body.drained_at)).toBeGreaterThan(0)
    expect(await ask(first)).toBe(200)
    expect(counts(upstreams)).toEqual([0, 1])
    const resumed = await manage(first, '/upstream-0/drain', 'DELETE')
    expect(resumed.body).toMatchObject({ state: 'available', drained_at: null, drained_by: null })
    expect(await ask(first)).toBe(200)
    expect(counts(upstreams)).toEqual([1, 1])
  })

  test('of all upstreams refuses requests with 503', async () => {
    const { upstreams, first } = await open()
    await manage(first, '/upstream-0/drain', 'POST')
    await manage(first, '/upstream-1/drain', 'POST')
    const { status, headers } = await first.post('/v1/responses', { model: 'm', input: 'Hi' })
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
    expect(counts(upstreams)).toEqual([0, 0])
    await manage(first, '/upstream-0/drain', 'DELETE')
    await manage(first, '/upstream-1/drain', 'DELETE')
  })

  test('lets requests in progress end', async () => {
    const { upstreams, first } = await open()
    let finish = () => {}
    const held = new Promise<void>((resolve) => {
      finish = resolve
    })
    upstreams[0]?.answer({ body: whole, cutsAt: [1], nextPiece: () => held })
    const answer = ask(first)
    await upstreams[0]?.until(({ requests }) => requests.length === 1)
    await manage(first, '/upstream-0/drain', 'POST')
    finish()
    expect(await answer).toBe(200)
    expect(counts(upstreams)).toEqual([1, 0])
    await manage(first, '/upstream-0/drain', 'DELETE')
  })

  test('acts in every process on the database, and in those that start later', async () => {
    const { upstreams, first, second } = await open(2)
    await manage(first, '/upstream-0/drain', 'POST')
    await eventually(
      'the other process drains it',
      async () => (await manage(second, '')).body.data[0].state === 'draining',
    )
    expect(await ask(second)).toBe(200)
    expect(counts(upstreams)).toEqual([0, 1])
    const third = await startGateway({
      database,
      upstream: upstreams.map(({ baseUrl }) => ({ url: baseUrl, models: [] })),
    })
    gateways.push(third)
    expect((await manage(third, '')).body.data[0].state).toBe('draining')
    await manage(second, '/upstream-0/drain', 'DELETE')
    await eventually(
      'the first process uses it again',
      async () => (await manage(first, '')).body.data[0].state === 'available',
    )
  })

  test('is audited once, however often it is repeated', async () => {
    const { first } = await open()
    const entries = async () => {
      const headers = { authorization: `Bearer ${await first.token(['admins'])}` }
      const response = await first.request('/v1/audit-log?resource=upstream:upstream-1', {
        headers,
      })
      return Object(await response.json()).data
    }
    const before = (await entries()).length
    for (let time = 0; time < 2; time++) await manage(first, '/upstream-1/drain', 'POST')
    for (let time = 0; time < 2; time++) await manage(first, '/upstream-1/drain', 'DELETE')
    const added = (await entries()).slice(0, (await entries()).length - before)
    expect(added.map(({ action }: { action: string }) => action)).toEqual([
      'upstream.resume',
      'upstream.drain',
    ])
    expect(added[1].changes).toEqual({ before: { draining: false }, after: { draining: true } })
  })

  test('of an unknown upstream is refused', async () => {
    const { first } = await open()
    expect(await manage(first, '/nowhere/drain', 'POST')).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found' } },
    })
  })
})
