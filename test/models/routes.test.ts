import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { toFile } from 'openai'
import { systemPrincipal } from '#lib/request-context.ts'
import { wavFile } from '#test/speech/decoders/wav-builder.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import { chatStream } from '#test/support/recordings.ts'
import { readFailure } from '#test/support/refusals.ts'
import { startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** `GET /v1/models`: what a client sees of the catalogue. */

let gateway: Gateway

const listed = {
  data: [
    {
      id: 'org/large',
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'org',
      max_model_len: 8192,
    },
    { id: 'small', object: 'model' },
  ],
}

beforeAll(async () => {
  const upstream = await upstreamThat({ headers: json, body: JSON.stringify(listed) })
  gateway = await startGateway({
    upstream: [{ name: 'local', url: upstream.baseUrl }],
    model: [
      {
        name: 'house/best',
        upstreams: ['local'],
        upstreamModel: 'org/large',
        aliases: ['best', 'house/newest'],
        capabilities: ['tools', 'vision'],
        contextWindow: 4096,
      },
      { name: 'house-embedder', mode: 'embed', upstreams: ['local'] },
    ],
  })
  await eventually(
    'the upstream was asked',
    () => gateway.deps.catalogue.list(systemPrincipal).length === 4,
  )
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

const house = {
  object: 'model',
  created: 0,
  owned_by: 'local',
  capabilities: [],
  context_window: null,
}
const best = {
  ...house,
  id: 'house/best',
  mode: 'generate',
  capabilities: ['tools', 'vision'],
  context_window: 4096,
}
const spoken = [
  'stt',
  'whisper-1',
  'gpt-4o-transcribe',
  'gpt-4o-mini-transcribe',
  'demo (no words)',
]
const all = [
  best,
  { ...house, id: 'house-embedder', mode: 'embed' },
  {
    ...house,
    id: 'org/large',
    mode: 'generate',
    created: 1_700_000_000,
    owned_by: 'org',
    context_window: 8192,
  },
  { ...house, id: 'small', mode: 'generate' },
  ...['best', 'house/newest'].map((id) => ({ ...best, id, alias_of: 'house/best' })),
  ...['local-hash', ...spoken].map((id) => ({
    ...house,
    id,
    owned_by: 'sluice',
    mode: id === 'local-hash' ? 'embed' : 'transcribe',
  })),
]

test('the list contains every name once, with mode and capabilities', async () => {
  const answer = await gateway.request('/v1/models')
  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual({ object: 'list', data: all })
})

test('the openai package reads it', async () => {
  const client = await gateway.openai()
  const names = await Array.fromAsync(client.models.list(), ({ id }) => id)
  expect(names).toEqual(all.map(({ id }) => id))
  expect<unknown>(await client.models.retrieve('org/large')).toMatchObject(all[2] ?? {})
})

test('every listed name is callable in its mode, and retrieved as it is listed', async () => {
  const { data } = Object(await (await gateway.request('/v1/models')).json())
  for (const model of data) {
    const one = await gateway.request(`/v1/models/${encodeURIComponent(model.id)}`)
    expect(await one.json()).toEqual(model)
  }
  const client = await gateway.openai()
  for (const { id, mode } of data) {
    const call =
      mode === 'embed'
        ? client.embeddings.create({ model: id, input: 'x' })
        : mode === 'transcribe'
          ? client.audio.transcriptions.create({
              model: id,
              file: await toFile(wavFile(new Uint8Array(32_000)), 'a.wav'),
            })
          : client.responses.create({ model: id, input: 'x' })
    const failure: unknown = await call.then(
      () => null,
      (error: unknown) => Object(error).code,
    )
    // The upstream of this test serves lists only.
    expect(failure, id).toBe(
      ['local-hash', ...spoken].includes(id) ? null : 'upstream_invalid_answer',
    )
  }
})

test('a model whose upstream reports the time of its response as creation has no date', async () => {
  const entry = (created: number) => ({ id: `m-${created}`, object: 'model', created })
  const nowS = Math.floor(Date.now() / 1_000)
  const body = JSON.stringify({ data: [entry(nowS), entry(nowS + 60), entry(nowS - 86_400)] })
  const upstream = await upstreamThat({ headers: json, body })
  const other = await startGateway({ upstream: [{ url: upstream.baseUrl }] })
  await eventually(
    'the upstream was asked',
    () => other.deps.catalogue.list(systemPrincipal).length === 3,
  )
  const dates = other.deps.catalogue.list(systemPrincipal).map(({ created }) => created)
  expect(dates).toEqual([0, 0, nowS - 86_400])
  await other.stop()
})

describe('one model', () => {
  test.each([
    ['/v1/models/small', 'small'],
    ['/v1/models/org/large', 'org/large'],
    ['/v1/models/org%2Flarge', 'org/large'],
    ['/v1/models/house/best', 'house/best'],
  ])('%s', async (path, id) => {
    const answer = await gateway.request(path)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual(all.find((model) => model.id === id))
  })

  test.each(['best', 'house/newest'])('is found by its alias %s', async (alias) => {
    const answer = await gateway.request(`/v1/models/${alias}`)
    expect(await answer.json()).toEqual({ ...best, id: alias, alias_of: 'house/best' })
  })

  test.each(['nope', 'org', 'org/large/', 'org%2', '%E0%A4%A', 'a/b/c', '__proto__', '..%2Fx'])(
    '%s does not exist',
    async (name) => {
      const failure = await readFailure(await gateway.request(`/v1/models/${name}`), gateway)
      expect([failure.status, failure.code, failure.param]).toEqual([
        404,
        'model_not_found',
        'model',
      ])
    },
  )
})

test('an alias resolves to the model, under the name of the request', async () => {
  const upstream = await startReplayUpstream({
    body: chatStream([chunk({ content: 'Hi' }), chunk({}, 'stop')]),
  })
  const other = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: [] }],
    model: [{ name: 'm', upstreamModel: 'deep/name', aliases: ['short'] }],
  })
  const answer = await other.post('/v1/responses', { model: 'short', input: 'x' })
  expect(await answer.json()).toMatchObject({ status: 'completed', model: 'short' })
  expect(JSON.parse(upstream.requests[0]?.body ?? '')).toMatchObject({ model: 'deep/name' })
  const names: unknown = await (await other.request('/v1/models')).json()
  expect(names).toMatchObject({
    data: [{ id: 'm' }, { id: 'short', alias_of: 'm' }, {}, {}, {}, {}, {}, {}],
  })
  await other.stop()
  await upstream.stop()
})
