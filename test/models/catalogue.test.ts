import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { toAppError } from '#lib/errors.ts'
import { systemPrincipal } from '#lib/request-context.ts'
import { type Catalogue, createCatalogue } from '#models/catalogue.ts'
import { createModelAccess } from '#models/model-access.ts'
import { createModelNames } from '#models/names.ts'
import { configuredUpstreams } from '#models/upstreams.ts'
import { createLog } from '#telemetry/log.ts'
import { adaptersWithoutModels } from '#test/support/adapters.ts'
import { eventually } from '#test/support/eventually.ts'
import { json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { openTransport } from '#test/support/transport.ts'

/** What exists, while upstreams come, go, hang and disagree. */

let opened: Catalogue[] = []
let logLines: string[] = []
beforeEach(() => {
  logLines = []
})
afterEach(async () => {
  for (const catalogue of opened.splice(0)) catalogue.close()
  opened = []
  await stopUpstreams()
})

type Given = {
  /** In the order of the configuration. */
  upstreams: { at: ReplayUpstream | string; models?: string[]; weight?: number }[]
  model?: ({ name: string } & Partial<Config['model'][number]>)[]
  refreshMs?: number
  refreshTimeoutMs?: number
}

function open({ upstreams, model = [], refreshMs = 60_000, refreshTimeoutMs = 5_000 }: Given) {
  const [defaults] = loadConfig({ SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1/v1' }).upstream
  if (defaults === undefined) throw new Error('no upstream')
  const entries = upstreams.map(({ at, models, weight = 1 }, index) => ({
    ...defaults,
    name: `upstream-${index}`,
    url: typeof at === 'string' ? at : at.baseUrl,
    weight,
    ...(models === undefined ? {} : { models }),
  }))
  const config: Pick<Config, 'model' | 'models' | 'limits'> = {
    limits: loadConfig({}).limits,
    models: { refreshMs, refreshTimeoutMs, access: [] },
    model: model.map((entry) => ({
      mode: 'generate',
      routing: 'ordered',
      targets: [],
      fallbacks: [],
      upstreams: entry.targets === undefined ? ['upstream-0'] : [],
      aliases: [],
      capabilities: [],
      ...entry,
    })),
  }
  const catalogue = createCatalogue({
    config,
    upstreams: configuredUpstreams({
      upstream: entries,
      llama: { enabled: false },
      onnx: { enabled: false },
      flite: { enabled: false },
    }),
    adapters: adaptersWithoutModels,
    access: createModelAccess(createModelNames({ prefix: 'vendor' }), () => []),
    transport: openTransport(),
    log: createLog({
      level: 'info',
      format: 'json',
      write: (line) => logLines.push(line),
      now: () => new Date(),
    }),
    now: () => new Date(1_700_000_000_000),
  })
  opened.push(catalogue)
  return catalogue
}

const models = (...names: string[]): ReplayAnswer => ({
  headers: json,
  body: JSON.stringify({ data: names.map((id) => ({ id })) }),
})
const namesOf = (catalogue: Catalogue) => catalogue.list(systemPrincipal).map(({ id }) => id)
const shows = (catalogue: Catalogue, ...names: string[]) =>
  eventually(`the list is ${names}`, () => namesOf(catalogue).join() === names.join())
const targetsOf = async (catalogue: Catalogue, name: string) =>
  (await catalogue.resolve(name, { principal: systemPrincipal })).targets.map(
    ({ upstream }) => upstream.name,
  )
const failureOf = async (catalogue: Catalogue, name: string, principal = systemPrincipal) => {
  const error = toAppError(
    await catalogue.resolve(name, { principal }).catch((thrown: unknown) => thrown),
  )
  return { status: error.status, code: error.wireCode, retryAfterS: error.retryAfterS }
}

describe('the list', () => {
  test('contains configured models, then those of upstreams in their order', async () => {
    const catalogue = open({
      upstreams: [
        { at: await upstreamThat(models('b', 'a')) },
        { at: await upstreamThat(models('c', 'b')) },
      ],
      model: [{ name: 'z' }, { name: 'y' }],
    })
    await shows(catalogue, 'z', 'y', 'b', 'a', 'c')
  })

  test('of an upstream with configured models is not requested', async () => {
    const upstream = await upstreamThat(models('b'))
    const catalogue = open({ upstreams: [{ at: upstream, models: ['a'] }], refreshMs: 5 })
    expect(namesOf(catalogue)).toEqual(['a'])
    expect((await failureOf(catalogue, 'b')).code).toBe('model_not_found')
    expect(upstream.requests).toEqual([])
  })

  test('is refreshed in the background', async () => {
    const upstream = await upstreamThat(models('a'))
    const catalogue = open({ upstreams: [{ at: upstream }], refreshMs: 5 })
    await shows(catalogue, 'a')
    upstream.answer(models('a', 'b'))
    await shows(catalogue, 'a', 'b')
    upstream.answer(models('b'))
    await shows(catalogue, 'b')
  })

  test.each<[string, ReplayAnswer]>([
    ['fails', { status: 500 }],
    ['answers HTML', { headers: { 'content-type': 'text/html' }, body: '<h1>Hi</h1>' }],
    ['breaks off', { headers: json, body: '{"data":[', ending: 'cut' }],
    ['hangs', { ending: 'silent' }],
  ])('keeps the models of an upstream that %s', async (_what, ill) => {
    const upstream = await upstreamThat(models('a'))
    const catalogue = open({ upstreams: [{ at: upstream }], refreshMs: 5, refreshTimeoutMs: 1_000 })
    await shows(catalogue, 'a')
    upstream.answer(ill)
    const warned = () => logLines.filter((line) => line.includes('model list failed')).length
    await eventually('it is noticed', () => warned() === 1)
    const asked = upstream.requests.length
    await eventually('it is asked again', () => upstream.requests.length > asked + 1)
    expect(namesOf(catalogue)).toEqual(['a'])
    expect(await targetsOf(catalogue, 'a')).toEqual(['upstream-0'])
    upstream.answer(models('a', 'b'))
    await shows(catalogue, 'a', 'b')
    expect(warned()).toBe(1)
  })

  test('does not wait for an upstream that hangs', async () => {
    const silent = await upstreamThat({ ending: 'silent' })
    const catalogue = open({
      upstreams: [{ at: silent }, { at: await upstreamThat(models('a')) }],
      model: [{ name: 'z' }],
    })
    expect(namesOf(catalogue)).toEqual(['z'])
    await shows(catalogue, 'z', 'a')
    expect(await targetsOf(catalogue, 'a')).toEqual(['upstream-1'])
  })
})

describe('a name', () => {
  test('that is configured resolves to its upstreams in order', async () => {
    const dead = 'http://127.0.0.1:1/v1'
    const catalogue = open({
      upstreams: [{ at: dead }, { at: dead }, { at: dead }],
      model: [{ name: 'm', upstreams: ['upstream-2', 'upstream-0'] }],
    })
    for (let times = 0; times < 20; times++) {
      expect(await targetsOf(catalogue, 'm')).toEqual(['upstream-2', 'upstream-0'])
    }
  })

  test('that is configured, or an alias, takes precedence over the same name at an upstream', async () => {
    const upstream = await upstreamThat(models('m', 'short', 'other'))
    const catalogue = open({
      upstreams: [{ at: upstream }],
      model: [{ name: 'm', aliases: ['short'], capabilities: ['configured'] }],
    })
    await shows(catalogue, 'm', 'other')
    const { capabilities } = await catalogue.resolve('m', { principal: systemPrincipal })
    expect(capabilities).toEqual(['configured'])
    expect((await catalogue.resolve('short', { principal: systemPrincipal })).id).toBe('m')
  })

  test('is found although another upstream hangs', async () => {
    const silent = await upstreamThat({ ending: 'silent' })
    const catalogue = open({ upstreams: [{ at: silent }, { at: await upstreamThat(models('a')) }] })
    expect(await targetsOf(catalogue, 'a')).toEqual(['upstream-1'])
  })

  test('that is unknown triggers a refresh, but not for every request', async () => {
    const upstream = await upstreamThat(models('a'))
    const catalogue = open({ upstreams: [{ at: upstream }] })
    await shows(catalogue, 'a')
    const asked = upstream.requests.length
    const failures = await Promise.all([...Array(20).keys()].map(() => failureOf(catalogue, 'new')))
    expect(new Set(failures.map(({ status }) => status))).toEqual(new Set([404]))
    expect(upstream.requests.length - asked).toBeLessThan(2)
  })

  test('that an upstream added is found immediately', async () => {
    const upstream = await upstreamThat(models('a'))
    const catalogue = open({ upstreams: [{ at: upstream }] })
    await shows(catalogue, 'a')
    upstream.answer(models('a', 'new'))
    // Asking again has a pause of its own.
    await Bun.sleep(2_100)
    expect(await targetsOf(catalogue, 'new')).toEqual(['upstream-0'])
  })

  test('is not reported as absent before every upstream has responded', async () => {
    const upstream = await upstreamThat({ status: 500 })
    const catalogue = open({ upstreams: [{ at: upstream }] })
    expect(await failureOf(catalogue, 'm')).toEqual({
      status: 503,
      code: 'service_unavailable',
      retryAfterS: 5,
    })
  })

  test('fails in the same way as one that the principal may not use', async () => {
    const upstream = await upstreamThat({ status: 500 })
    const catalogue = open({ upstreams: [{ at: upstream }], model: [{ name: 'hidden' }] })
    const caller = { userId: 'ann', groups: [], credential: { kind: 'api-key', models: ['x'] } }
    expect(await targetsOf(catalogue, 'hidden')).toEqual(['upstream-0'])
    const [hidden, absent] = [
      await failureOf(catalogue, 'hidden', caller),
      await failureOf(catalogue, 'absent', caller),
    ]
    expect(hidden).toEqual(absent)
    expect(hidden).toMatchObject({ status: 503 })
  })

  test.each(['__proto__', 'constructor', 'toString', ''])('%p is not a model', async (name) => {
    const catalogue = open({ upstreams: [{ at: await upstreamThat(models('a')) }] })
    expect((await failureOf(catalogue, name)).code).toBe('model_not_found')
  })
})

test('upstreams that list the same model share it, with the weight of each', async () => {
  const catalogue = open({
    upstreams: [
      { at: 'http://127.0.0.1:1/v1', models: ['m'], weight: 3 },
      { at: 'http://127.0.0.1:2/v1', models: ['m'] },
    ],
  })
  const { targets } = await catalogue.resolve('m', { principal: systemPrincipal })
  expect(targets.map(({ upstream, tier, weight }) => [upstream.name, tier, weight])).toEqual([
    ['upstream-0', 0, 3],
    ['upstream-1', 0, 1],
  ])
})

test('closing aborts pending requests', async () => {
  const silent = await upstreamThat({ ending: 'silent' })
  const catalogue = open({ upstreams: [{ at: silent }], refreshMs: 5 })
  await silent.until(({ requests }) => requests.length === 1)
  catalogue.close()
  await silent.until(({ connections }) => connections.open === 0)
  expect(logLines).toEqual([])
})
