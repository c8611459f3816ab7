import { afterEach, describe, expect, test } from 'bun:test'
import type { Target } from '#inference/upstream.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import {
  countedTarget,
  countingUpstream,
  jsonAnswer,
  saying,
  startCounter,
  stopCounting,
} from '#test/support/token-counting.ts'

afterEach(stopCounting)

const withTime = { limitMs: 5_000, context: makeRequestContext() }

/** A counting method of an upstream, and its response. */
const ways = [
  {
    name: 'vLLM',
    target: (baseUrl: string) => countedTarget(baseUrl, { tokenCounter: 'vllm' }),
    answer: () => jsonAnswer({ count: 321, max_model_len: 4096, tokens: [1, 2] }),
    paths: ['/tokenize'],
  },
  {
    name: 'llama.cpp',
    target: (baseUrl: string) => countedTarget(baseUrl, { tokenCounter: 'llama.cpp' }),
    answer: (path: string) =>
      jsonAnswer(
        path === '/tokenize' ? { tokens: Array(321).fill(7) } : { prompt: '<user>Hello</user>' },
      ),
    paths: ['/apply-template', '/tokenize'],
  },
  {
    name: 'Responses',
    target: (baseUrl: string) =>
      countedTarget(baseUrl, { kind: 'responses', tokenCounter: 'native' }),
    answer: () => jsonAnswer({ object: 'response.input_tokens', input_tokens: 321 }),
    paths: ['/v1/responses/input_tokens'],
  },
  {
    name: 'Messages',
    target: (baseUrl: string) =>
      countedTarget(baseUrl, { kind: 'messages', tokenCounter: 'native' }),
    answer: () => jsonAnswer({ input_tokens: 321 }),
    paths: ['/v1/messages/count_tokens'],
  },
]

describe.each(ways)('an upstream that counts as $name', ({ target, answer, paths }) => {
  test('receives a count request only', async () => {
    const upstream = await countingUpstream(({ path }) => answer(path))
    const counted = await startCounter().count(
      saying('Hello'),
      [target(upstream.baseUrl)],
      withTime,
    )
    expect(counted).toEqual({ tokens: 321, tier: 'upstream' })
    expect(upstream.requests.map(({ path }) => path)).toEqual(paths)
  })

  test('is not called twice for the same request', async () => {
    const upstream = await countingUpstream(({ path }) => answer(path))
    const counter = startCounter()
    const targets = [target(upstream.baseUrl)]
    await counter.count(saying('Hello'), targets, withTime)
    expect(await counter.count(saying('Hello'), targets, { ...withTime, limitMs: 0 })).toEqual({
      tokens: 321,
      tier: 'upstream',
    })
    expect(upstream.requests).toHaveLength(paths.length)
  })

  test.each([
    ['nothing', {}],
    ['a text', { count: 'many', input_tokens: '7', prompt: 7, tokens: 'seven' }],
    ['zero', { count: 0, input_tokens: 0, prompt: '', tokens: [] }],
    ['less than nothing', { count: -5, input_tokens: -5 }],
    ['a list', []],
  ])('and answers %s is passed over', async (_what, said) => {
    const upstream = await countingUpstream(() => jsonAnswer(said))
    const targets = [target(upstream.baseUrl)]
    const { tier, tokens } = await startCounter().count(saying('Hello'), targets, withTime)
    expect(tier).toBe('estimate')
    expect(tokens).toBeWithin(5, 15)
  })

  test.each([404, 405, 501])('and responds %d is not called again', async (status) => {
    const upstream = await countingUpstream(() => jsonAnswer({ error: { message: 'no' } }, status))
    const counter = startCounter()
    const targets = [target(upstream.baseUrl)]
    for (const text of ['Hello', 'Hello again', 'And again']) {
      expect((await counter.count(saying(text), targets, withTime)).tier).toBe('estimate')
    }
    expect(upstream.requests).toHaveLength(1)
  })
})

describe('an upstream with a counter', () => {
  const vllm = (baseUrl: string) => countedTarget(baseUrl, { tokenCounter: 'vllm' })
  const count = jsonAnswer({ count: 321 })

  test('that is too slow is skipped, and its request aborted', async () => {
    const upstream = await countingUpstream(() => ({ ending: 'silent' }))
    const counter = startCounter({ upstreamMs: 60 })
    const targets = [vllm(upstream.baseUrl)]
    expect((await counter.count(saying('Hello'), targets, withTime)).tier).toBe('estimate')
    await upstream.until(({ connections }) => connections.aborted === 1)
    expect((await counter.count(saying('Hello again'), targets, withTime)).tier).toBe('estimate')
    expect(upstream.requests).toHaveLength(1)
  })

  test.each([
    ['breaks', jsonAnswer({ error: 'x' }, 500)],
    ['breaks off', { ...count, ending: 'cut' as const }],
    ['answers with a page', { headers: { 'content-type': 'text/html' }, body: '<html>' }],
  ])('that %s is passed over', async (_name, answer) => {
    const upstream = await countingUpstream(() => answer)
    const targets = [vllm(upstream.baseUrl)]
    const { tier } = await startCounter().count(saying('Hello'), targets, withTime)
    expect(tier).toBe('estimate')
  })

  test('that is unreachable is skipped', async () => {
    const targets = [vllm('http://127.0.0.1:1/v1')]
    const { tier } = await startCounter().count(saying('Hello'), targets, withTime)
    expect(tier).toBe('estimate')
  })

  test('that refuses one request is called for the next', async () => {
    const upstream = await countingUpstream(({ body }) =>
      body.includes('strange') ? jsonAnswer({ error: { message: 'no' } }, 400) : count,
    )
    const counter = startCounter()
    const targets = [vllm(upstream.baseUrl)]
    expect((await counter.count(saying('strange'), targets, withTime)).tier).toBe('estimate')
    expect((await counter.count(saying('plain'), targets, withTime)).tier).toBe('upstream')
  })

  test('is not called without time', async () => {
    const upstream = await countingUpstream(() => count)
    const targets = [vllm(upstream.baseUrl)]
    for (const limitMs of [0, 2, 20]) {
      const counted = await startCounter().count(saying('Hello'), targets, { ...withTime, limitMs })
      expect(counted.tier).toBe('estimate')
    }
    expect(upstream.requests).toEqual([])
  })

  test('is aborted when the client disconnects, and called for the next request', async () => {
    const upstream = await countingUpstream(({ body }) =>
      body.includes('leaving') ? { ending: 'silent' } : count,
    )
    const counter = startCounter()
    const targets = [vllm(upstream.baseUrl)]
    const leaving = new AbortController()
    const counting = counter.count(saying('leaving'), targets, {
      limitMs: 5_000,
      context: makeRequestContext(leaving.signal),
    })
    await upstream.until(({ requests }) => requests.length === 1)
    leaving.abort()
    expect((await counting).tier).toBe('estimate')
    await upstream.until(({ connections }) => connections.aborted === 1)
    expect((await counter.count(saying('staying'), targets, withTime)).tier).toBe('upstream')
  })

  test('has a limit of concurrent calls', async () => {
    const upstream = await countingUpstream(() => ({ ...count, cutsAt: [3], pauseMs: 100 }))
    const counter = startCounter()
    const targets = [vllm(upstream.baseUrl)]
    const counts = await Promise.all(
      Array.from({ length: 100 }, (_, at) =>
        counter.count(saying(`Hello ${at}`), targets, withTime),
      ),
    )
    const tiers = counts.map(({ tier }) => tier)
    expect(tiers.filter((tier) => tier === 'upstream')).toHaveLength(64)
    expect(tiers.filter((tier) => tier === 'estimate')).toHaveLength(36)
  })

  test('is not called unless configured', async () => {
    const upstream = await countingUpstream(() => count)
    const targets: Target[] = [
      countedTarget(upstream.baseUrl),
      countedTarget(upstream.baseUrl, { kind: 'responses' }),
      countedTarget(upstream.baseUrl, { kind: 'messages' }),
      countedTarget(upstream.baseUrl, { tokenCounter: 'native' }),
    ]
    for (const target of targets) {
      const { tier } = await startCounter().count(saying('Hello'), [target], withTime)
      expect(tier).toBe('estimate')
    }
    expect(upstream.requests).toEqual([])
  })
})
