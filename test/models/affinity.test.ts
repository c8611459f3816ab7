import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Target } from '#inference/upstream.ts'
import { balance } from '#models/balance.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, target, upstreamThat, whole } from '#test/support/generations.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'

/** Requests of one session meet the same upstream, whose prompt cache knows them. */

const weights: Record<string, number> = { a: 1, b: 2, c: 5 }
const weightOf = ({ upstream }: Target) => weights[upstream.name] ?? 0
const targets = Object.keys(weights).map((name) => target('http://127.0.0.1:1/v1', name))
const orderOf = (affinity: string | null, among = targets) =>
  balance(among, weightOf, affinity).map(({ upstream }) => upstream.name)
const sessions = Array.from({ length: 4_000 }, (_, index) => `session ${index}`)

test('a session has one order of upstreams, independent of the list', () => {
  for (const session of sessions.slice(0, 100)) {
    expect(orderOf(session, targets.toReversed())).toEqual(orderOf(session))
  }
})

test('sessions are balanced by weight, in every position', () => {
  const firsts = sessions.map((session) => orderOf(session)[0])
  for (const [name, weight] of Object.entries(weights)) {
    const share = firsts.filter((first) => first === name).length / sessions.length
    expect(Math.abs(share - weight / 8)).toBeLessThan(0.03)
  }
  const seconds = sessions.map((session) => orderOf(session)).filter(([first]) => first === 'c')
  const share = seconds.filter(([, second]) => second === 'b').length / seconds.length
  expect(Math.abs(share - 2 / 3)).toBeLessThan(0.04)
})

test('a removed upstream moves its own sessions only', () => {
  const left = targets.filter(({ upstream }) => upstream.name !== 'b')
  for (const session of sessions) {
    expect(orderOf(session, left)).toEqual(orderOf(session).filter((name) => name !== 'b'))
  }
})

test('without a session requests are balanced randomly', () => {
  const firsts = new Set(sessions.slice(0, 200).map(() => orderOf(null)[0]))
  expect([...firsts].toSorted()).toEqual(['a', 'b', 'c'])
})

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
    () => gateway.deps.catalogue.list()[0]?.targets.length === 3,
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
  const session = () =>
    during(async () => {
      for (let times = 0; times < 4; times++) await ask({ prompt_cache_key: 'two' })
    })
  const home = (await session()).indexOf(4)
  const [first] = upstreams.slice(home)
  first?.answer({ status: 503 })
  const away = await session()
  expect(away.filter((_count, index) => index !== home).toSorted()).toEqual([0, 4])
  first?.answer({ body: whole })
  expect((await session()).indexOf(4)).toBe(home)
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
