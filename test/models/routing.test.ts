import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import type { Config } from '#config/schema.ts'
import { systemPrincipal } from '#lib/request-context.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'

/** How requests reach the targets of `[[model]]` entries, over real sockets. */

let gateway: Gateway | undefined
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
  await stopUpstreams()
})
afterAll(stopUpstreams)

const messageBody = { max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }
const withoutStore = ({ store: _, ...body }: { store: boolean }) => body

type ModelEntries = Partial<Config['model'][number]>[]

/** A gateway with upstreams that list no models, and these `[[model]]` entries. */
async function open(
  answers: readonly ReplayAnswer[],
  model: ModelEntries,
  options: Omit<GatewayOptions, 'upstream' | 'model'> = {},
): Promise<ReplayUpstream[]> {
  const upstreams = await Promise.all(answers.map((answer) => upstreamThat(answer)))
  gateway = await startGateway({
    ...options,
    upstream: upstreams.map(({ baseUrl }) => ({ url: baseUrl, models: [] })),
    model,
    retry: { backoffMs: 1 },
    // On a busy machine the tests would wait long enough for checks.
    health: { probe: false },
  })
  return upstreams
}

async function ask(fields: object = {}): Promise<{ status: number; body: object }> {
  const given = { model: 'm', input: 'Hi', store: false, stream: true, ...fields }
  const response = await gateway?.post('/v1/responses', given)
  const text = (await response?.text()) ?? ''
  return { status: response?.status ?? 0, body: text.startsWith('{') ? JSON.parse(text) : {} }
}

const counts = (upstreams: readonly ReplayUpstream[]) =>
  upstreams.map(({ requests }) => requests.length)
const modelsOf = ({ requests }: ReplayUpstream) =>
  new Set(requests.map(({ body }) => JSON.parse(body).model))

const target = (index: number, fields: object = {}) => ({
  upstream: `upstream-${index}`,
  ...fields,
})
const both = [target(0), target(1)]

describe('routing = "balanced"', () => {
  test('shares requests between equal upstreams', async () => {
    const upstreams = await open(
      [{ body: whole }, { body: whole }],
      [{ name: 'm', targets: both, routing: 'balanced' }],
    )
    for (let round = 0; round < 10; round++) await Promise.all([ask(), ask()])
    const [first = 0, second = 0] = counts(upstreams)
    expect(first + second).toBe(20)
    expect(Math.min(first, second)).toBeGreaterThan(0)
  })

  test('keeps the requests of a session together, and sends each target its own model name', async () => {
    const upstreams = await open(
      [{ body: whole }, { body: whole }],
      [
        {
          name: 'm',
          targets: [target(0, { model: 'large' }), target(1, { model: 'larger', weight: 3 })],
          routing: 'balanced',
        },
      ],
    )
    for (let round = 0; round < 8; round++) await ask({ prompt_cache_key: 'one' })
    expect(counts(upstreams).toSorted()).toEqual([0, 8])
    const [first, second] = upstreams
    first?.answer({ status: 500 })
    second?.answer({ status: 500 })
    await ask()
    expect(upstreams.map(modelsOf)).toEqual([new Set(['large']), new Set(['larger'])])
  })

  test('follows the weights of the targets', async () => {
    const upstreams = await open(
      [{ body: whole }, { body: whole }],
      [{ name: 'm', targets: [target(0), target(1, { weight: 100 })], routing: 'balanced' }],
    )
    for (let round = 0; round < 40; round++) await ask()
    const [light = 0, heavy = 0] = counts(upstreams)
    expect(light + heavy).toBe(40)
    // However slow a busy machine makes it, a target keeps a fifth of its weight.
    expect(heavy).toBeGreaterThan(6 * light)
  })
})

describe('routing = "ordered"', () => {
  test('is the default, and prefers the first one that works', async () => {
    const upstreams = await open([{ body: whole }, { body: whole }], [{ name: 'm', targets: both }])
    for (let round = 0; round < 4; round++) await ask({ prompt_cache_key: `key ${round}` })
    expect(counts(upstreams)).toEqual([4, 0])
    upstreams[0]?.answer({ status: 500 })
    for (let round = 0; round < 10; round++) expect((await ask()).status).toBe(200)
    expect(counts(upstreams)).toEqual([4 + 3, 10])
  })
})

describe('fallbacks', () => {
  const models = [
    { name: 'm', targets: [target(0)], fallbacks: ['small', 'last'] },
    { name: 'small', targets: [target(1, { model: 'small-there' })], fallbacks: ['m'] },
    { name: 'last', targets: [target(2)] },
  ]

  test('answer in their order while the model itself cannot', async () => {
    const upstreams = await open([{ status: 500 }, { body: whole }, { body: whole }], models)
    expect((await ask()).status).toBe(200)
    expect(counts(upstreams)).toEqual([1, 1, 0])
    expect(modelsOf(upstreams[1] as ReplayUpstream)).toEqual(new Set(['small-there']))
    upstreams[1]?.answer({ status: 500 })
    expect((await ask()).status).toBe(200)
    expect(counts(upstreams)).toEqual([2, 2, 1])
  })

  test('do not answer what the request itself is at fault for', async () => {
    const refusal = { status: 400, headers: json, body: '{"error":{"message":"bad"}}' }
    const upstreams = await open([refusal, { body: whole }, { body: whole }], models)
    expect((await ask()).status).toBe(400)
    expect(counts(upstreams)).toEqual([1, 0, 0])
  })

  test('are not there for callers who may not use them', async () => {
    const restricted = [
      { name: 'm', targets: [target(0)], fallbacks: ['small'] },
      { name: 'small', targets: [target(1)], groups: ['staff'] },
    ]
    const upstreams = await open([{ status: 500 }, { body: whole }], restricted)
    expect((await ask()).status).toBe(502)
    expect(counts(upstreams)[1]).toBe(0)
  })

  test('are named in no list, and stand in for aliases too', async () => {
    const upstreams = await open(
      [{ status: 500 }, { body: whole }],
      [
        { name: 'm', aliases: ['short'], targets: [target(0)], fallbacks: ['other'] },
        { name: 'small', aliases: ['other'], targets: [target(1)] },
      ],
    )
    expect(gateway?.deps.catalogue.list(systemPrincipal).map(({ id }) => id)).toEqual([
      'm',
      'small',
    ])
    expect((await ask({ model: 'short' })).status).toBe(200)
    expect(counts(upstreams)).toEqual([1, 1])
  })
})

describe('a context window', () => {
  const input = 'word '.repeat(1_000)
  const overflow = {
    status: 400,
    headers: json,
    body: JSON.stringify({ error: { message: 'x', code: 'context_length_exceeded' } }),
  }

  test('that is too small for the input is passed over', async () => {
    const upstreams = await open(
      [{ body: whole }, { body: whole }],
      [
        {
          name: 'm',
          contextWindow: 4_096,
          targets: [target(0, { contextWindow: 512 }), target(1)],
        },
      ],
    )
    await ask({ input })
    await ask()
    expect(counts(upstreams)).toEqual([1, 1])
    expect(upstreams[0]?.requests[0]?.body).not.toContain('word word')
  })

  test('that is too small leads to a fallback with a larger one', async () => {
    const upstreams = await open(
      [{ body: whole }, { body: whole }],
      [
        { name: 'm', contextWindow: 512, targets: [target(0)], fallbacks: ['long'] },
        { name: 'long', contextWindow: 32_768, targets: [target(1)] },
      ],
    )
    await ask({ input })
    expect(counts(upstreams)).toEqual([0, 1])
  })

  test('that no target has leaves the decision to the one with the largest', async () => {
    const upstreams = await open(
      [{ body: whole }, overflow],
      [
        {
          name: 'm',
          targets: [target(0, { contextWindow: 128 }), target(1, { contextWindow: 512 })],
        },
      ],
    )
    const { status, body } = await ask({ input })
    expect(status).toBe(400)
    expect(body).toMatchObject({ error: { code: 'context_length_exceeded' } })
    expect(counts(upstreams)).toEqual([0, 1])
  })

  test('that only the upstream knows leads to a larger one after its refusal, not to an equal one', async () => {
    const upstreams = await open(
      [overflow, overflow, { body: whole }],
      [
        { name: 'm', targets: both, fallbacks: ['long'] },
        { name: 'long', contextWindow: 32_768, targets: [target(2)] },
      ],
    )
    expect((await ask({ input })).status).toBe(200)
    expect(counts(upstreams)).toEqual([1, 0, 1])
  })
})

describe('a stream that has sent heartbeats', () => {
  const paths = { '/v1/responses': { input: 'Hi' }, '/compat/v1/messages': messageBody }
  test.each(Object.entries(paths))(
    'still fails over to another upstream: %s',
    async (path, fields) => {
      const silent = { ending: 'silent' } as const
      const [first, second] = await open(
        [silent, { body: whole }],
        [{ name: 'm', targets: both }],
        { stream: { heartbeatMs: 20 } },
      )
      const body = { model: 'm', stream: true, store: false, ...fields }
      const response = await gateway?.post(
        path,
        path.startsWith('/compat') ? withoutStore(body) : body,
      )
      const frames: string[] = []
      const decoder = new TextDecoder()
      for await (const chunk of response?.body ?? []) {
        frames.push(decoder.decode(chunk))
        // The upstream breaks off after a few heartbeats.
        if (frames.length === 3) await first?.stop()
      }
      expect(frames.length).toBeGreaterThan(3)
      expect(frames.join('')).toContain('"two"')
      expect(frames.join('')).not.toMatch(/event: error|response.failed/)
      expect([first, second].map((each) => each?.requests.length)).toEqual([1, 1])
    },
  )
})
