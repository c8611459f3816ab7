import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemPrincipal } from '#lib/request-context.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'

/** Requests of one session meet the same upstream, whose prompt cache knows them. */

let upstreams: ReplayUpstream[]
let gateway: Gateway

beforeAll(async () => {
  const models = JSON.stringify({ data: [{ id: 'm' }] })
  const answer = ({ path }: { path: string }) =>
    path.endsWith('/models') ? { headers: json, body: models } : { body: whole }
  upstreams = await Promise.all([0, 1, 2].map(() => startReplayUpstream(answer)))
  gateway = await startGateway({ upstream: upstreams.map(({ baseUrl }) => ({ url: baseUrl })) })
  await eventually(
    'all list the model',
    () => gateway.deps.catalogue.list(systemPrincipal)[0]?.targets.length === 3,
  )
})
afterAll(async () => {
  await gateway.stop()
  for (const upstream of upstreams) await upstream.stop()
  await stopUpstreams()
})

const generations = ({ requests }: ReplayUpstream) =>
  requests.filter(({ method }) => method === 'POST').length

/** How many requests each upstream has got in the meantime. */
async function during(work: () => Promise<void>): Promise<number[]> {
  const before = upstreams.map(generations)
  await work()
  return upstreams.map((upstream, index) => generations(upstream) - (before[index] ?? 0))
}

async function ask(fields: object, subject = 'tester'): Promise<void> {
  const answer = await gateway.request('/v1/responses', {
    method: 'POST',
    headers: { authorization: `Bearer ${await gateway.token(['users'], subject)}` },
    body: JSON.stringify({ model: 'm', input: 'Hi', store: false, ...fields }),
  })
  expect(answer.status).toBe(200)
  await answer.text()
}

test('requests with the same prompt_cache_key go to the same upstream', async () => {
  const met = await during(async () => {
    for (let times = 0; times < 12; times++) await ask({ prompt_cache_key: 'one' })
  })
  expect(met.toSorted()).toEqual([0, 0, 12])
})

test('other keys, and the same key of other users, are balanced', async () => {
  const byKey = await during(async () => {
    for (let key = 0; key < 40; key++) await ask({ prompt_cache_key: `key ${key}` })
  })
  const byUser = await during(async () => {
    for (let user = 0; user < 40; user++) await ask({ prompt_cache_key: 'one' }, `user-${user}`)
  })
  // That one of three gets none of forty by chance happens once in ten million times.
  for (const met of [byKey, byUser]) expect(Math.min(...met)).toBeGreaterThan(0)
})

test('a session fails over while its upstream is unavailable, then returns', async () => {
  // Fewer failures than eject an upstream.
  const session = () =>
    during(async () => {
      for (let times = 0; times < 2; times++) await ask({ prompt_cache_key: 'two' })
    })
  const home = (await session()).indexOf(2)
  const [first] = upstreams.slice(home)
  first?.answer({ status: 503 })
  const away = await session()
  expect(away.filter((_count, index) => index !== home).toSorted()).toEqual([0, 2])
  first?.answer({ body: whole })
  expect((await session()).indexOf(2)).toBe(home)
})

test('session affinity applies to agents as well', async () => {
  const made = await gateway.post('/v1/agents', { name: 'A', model: 'm' })
  const { model_id: model } = Object(await made.json())
  const byModel = await during(() => ask({ prompt_cache_key: 'three' }))
  const byAgent = await during(() => ask({ prompt_cache_key: 'three', model }))
  expect(byAgent).toEqual(byModel)
})

test('sessions do not change the order of a configured model', async () => {
  const upstream = await upstreamThat({ body: whole })
  const other = await startGateway({
    upstream: [
      { url: upstream.baseUrl, models: [] },
      { url: 'http://127.0.0.1:1/v1', models: [] },
    ],
    model: [{ name: 'm', upstreams: ['upstream-0', 'upstream-1'] }],
  })
  for (let key = 0; key < 10; key++) {
    const body = { model: 'm', input: 'Hi', prompt_cache_key: `key ${key}`, store: false }
    expect((await other.post('/v1/responses', body)).status).toBe(200)
  }
  expect(upstream.requests.length).toBe(10)
  await other.stop()
})
