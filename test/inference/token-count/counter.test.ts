import { afterEach, describe, expect, test } from 'bun:test'
import type { GenerationRequest } from '#inference/request.ts'
import { estimateTokens } from '#inference/token-estimate.ts'
import { eventually } from '#test/support/eventually.ts'
import { makeRequest, makeRequestContext, userMessage } from '#test/support/generation.ts'
import { png, toDataUrl } from '#test/support/image-headers.ts'
import {
  countedTarget,
  countingUpstream,
  jsonAnswer,
  recordOf,
  saying,
  silentTarget,
  startCounter,
  stopCounting,
} from '#test/support/token-counting.ts'
import { realTokens, textKinds, textOf, vocabularies } from '#test/support/token-texts.ts'
import { writeTokenizerFile, writeWordTokenizer } from '#test/support/tokenizer-file.ts'

afterEach(stopCounting)

const withTime = { limitMs: 150_000, context: makeRequestContext() }
const withoutTime = { limitMs: 0, context: makeRequestContext() }
/** The token overhead of one message, for models without their own count. */
const aroundOneMessage = estimateTokens(saying(''))

describe('the source of a count', () => {
  test('is the tokenizer file of the model, exactly', async () => {
    const target = countedTarget('http://127.0.0.1:1/v1', { tokenizerFile: writeWordTokenizer() })
    const request = saying('five words, and a mark')
    expect(await startCounter().count(request, [target], withTime)).toEqual({
      tokens: 6 + aroundOneMessage,
      tier: 'tokenizer-file',
    })
  })

  test('is the upstream first, then the file', async () => {
    const tokenizerFile = writeWordTokenizer()
    const upstream = await countingUpstream(({ body }) =>
      body.includes('strange') ? jsonAnswer({}, 400) : jsonAnswer({ count: 321 }),
    )
    const target = countedTarget(upstream.baseUrl, { tokenCounter: 'vllm', tokenizerFile })
    const counter = startCounter()
    const tierOf = async (text: string) =>
      (await counter.count(saying(text), [target], withTime)).tier
    expect([await tierOf('plain'), await tierOf('strange')]).toEqual(['upstream', 'tokenizer-file'])
  })

  test('is the built-in tokenizer without a usable file', async () => {
    const counter = startCounter({ tokenizer: 'o200k' })
    const broken = countedTarget('http://127.0.0.1:1/v1', {
      tokenizerFile: writeTokenizerFile('no JSON'),
    })
    const expected = {
      tokens: realTokens('english', 'o200k') + aroundOneMessage,
      tier: 'tokenizer' as const,
    }
    const request = saying(textOf('english'))
    expect(await counter.count(request, [silentTarget], withTime)).toEqual(expected)
    expect(await counter.count(request, [broken], withTime)).toEqual(expected)
  })

  test('is an estimate if the built-in tokenizer is disabled', async () => {
    const request = saying(textOf('english'))
    expect(await startCounter().count(request, [silentTarget], withTime)).toEqual({
      tokens: estimateTokens(request),
      tier: 'estimate',
    })
  })

  test('is an estimate without a target', async () => {
    expect((await startCounter().count(saying('Hello'), [], withTime)).tier).toBe('estimate')
  })
})

describe('a count without time', () => {
  test('is an estimate, and no tokenizer is loaded', async () => {
    const counter = startCounter({ tokenizer: 'o200k' })
    const request = saying('Hello')
    for (const limitMs of [0, 2, 20]) {
      const counted = await counter.count(request, [silentTarget], { ...withTime, limitMs })
      expect(counted).toEqual({ tokens: estimateTokens(request), tier: 'estimate' })
    }
  })

  test('uses cached counts per text', async () => {
    const counter = startCounter({ tokenizer: 'o200k' })
    const [one, two] = [userMessage(textOf('english')), userMessage(textOf('code'))]
    const both = makeRequest({ items: [one, two] })
    await counter.count(both, [silentTarget], withTime)
    const counted = await counter.count(makeRequest({ items: [two] }), [silentTarget], withoutTime)
    expect(counted).toEqual({
      tokens: realTokens('code', 'o200k') + aroundOneMessage,
      tier: 'tokenizer',
    })
  })

  test('is an estimate again after eviction', async () => {
    const counter = startCounter({ tokenizer: 'o200k', textsMax: 2 })
    await counter.count(saying('Hello'), [silentTarget], withTime)
    expect((await counter.count(saying('Hello'), [silentTarget], withoutTime)).tier).toBe(
      'tokenizer',
    )
    for (const text of ['one', 'two', 'three']) {
      await counter.count(saying(text), [silentTarget], withoutTime)
    }
    expect((await counter.count(saying('Hello'), [silentTarget], withoutTime)).tier).toBe(
      'estimate',
    )
  })
})

test('concurrent counts do not mix', async () => {
  const counter = startCounter({ tokenizer: 'o200k' })
  const requests = Array.from({ length: 40 }, (_, at) => saying('word '.repeat(at + 1).trim()))
  const counts = await Promise.all(
    requests.map((request) => counter.count(request, [silentTarget], withTime)),
  )
  expect(counts.map(({ tokens }) => tokens - aroundOneMessage)).toEqual(
    requests.map((_, at) => at + 1),
  )
})

describe('a count is close to real tokenizers', () => {
  /** The maximum deviation of each tier from the real count, with a foreign vocabulary. */
  const bounds: Record<'tokenizer' | 'estimate', Record<string, readonly [number, number]>> = {
    tokenizer: {
      english: [0.95, 1.05],
      code: [0.85, 1.05],
      json: [0.85, 1.05],
      german: [0.8, 1.05],
      greek: [0.4, 1.05],
      chinese: [0.9, 1.4],
    },
    estimate: {
      english: [0.95, 1.1],
      code: [0.9, 1.1],
      json: [0.85, 1.05],
      german: [0.8, 1.1],
      greek: [0.5, 1.25],
      chinese: [1.1, 1.65],
    },
  }
  for (const tier of ['tokenizer', 'estimate'] as const) {
    for (const kind of textKinds) {
      const [low = 0, high = 0] = bounds[tier][kind] ?? []
      test(`${kind}, by the ${tier}: from ${low} to ${high} times as many`, async () => {
        const counter = startCounter({ tokenizer: tier === 'tokenizer' ? 'o200k' : 'none' })
        const counted = await counter.count(saying(textOf(kind)), [silentTarget], withTime)
        expect(counted.tier).toBe(tier)
        for (const vocabulary of vocabularies) {
          const ratio = (counted.tokens - aroundOneMessage) / realTokens(kind, vocabulary)
          expect(ratio).toBeWithin(low, high)
        }
      })
    }
  }
})

describe('counts are calibrated by reported usage', () => {
  const target = countedTarget('http://127.0.0.1:1/v1')
  const otherTarget = { ...target, model: 'another-name' }

  /** Reports are taken in after the answer, so each is waited for. */
  async function learnUntil(
    counter: ReturnType<typeof startCounter>,
    request: GenerationRequest,
    reported: number,
  ): Promise<void> {
    await eventually('the count comes near to the report', async () => {
      counter.learn(recordOf(target, reported), { request })
      const { tokens } = await counter.count(request, [target], withoutTime)
      return Math.abs(tokens / reported - 1) < 0.01
    })
  }

  test.each(['none', 'o200k'] as const)('with the tokenizer %s', async (tokenizer) => {
    const counter = startCounter({ tokenizer })
    const request = saying(textOf('greek'))
    const before = (await counter.count(request, [target], withTime)).tokens
    await learnUntil(counter, request, Math.round(before * 1.4))
    const other = await counter.count(request, [otherTarget], withoutTime)
    expect(other.tokens).toBe(before)
    const prose = saying(textOf('english'))
    const untouched = (await counter.count(prose, [otherTarget], withTime)).tokens
    expect((await counter.count(prose, [target], withTime)).tokens).toBeWithin(
      untouched,
      untouched + 4,
    )
  })

  test('not for the tokenizer file of the model', async () => {
    const exact = { ...target, tokenizerFile: writeWordTokenizer() }
    const counter = startCounter()
    const request = saying(textOf('english'))
    const before = await counter.count(request, [exact], withTime)
    await learnUntil(counter, request, Math.round(estimateTokens(request) * 1.4))
    expect(await counter.count(request, [exact], withTime)).toEqual(before)
  })

  test('not for failed generations, without usage, or with images', async () => {
    const counter = startCounter()
    const request = saying(textOf('english'))
    const before = await counter.count(request, [target], withoutTime)
    const image = { type: 'image', url: toDataUrl(png(750, 1)), detail: null } as const
    const pictured = makeRequest({
      items: [...request.items, { type: 'message', role: 'user', parts: [image] }],
    })
    const record = recordOf(target, before.tokens * 1.5)
    counter.learn({ ...record, outcome: 'failed' }, { request })
    counter.learn({ ...record, usage: null }, { request })
    counter.learn({ ...record, target: null }, { request })
    counter.learn(record, { request: pictured })
    // Reports are taken in one after the other, so after this one all were.
    const plain = saying(textOf('code'))
    await learnUntil(counter, plain, Math.round(estimateTokens(plain) * 1.3))
    const after = await counter.count(request, [target], withoutTime)
    expect(after.tokens).toBeWithin(before.tokens, before.tokens + 4)
  })

  test('for a sample, not each time', async () => {
    const counter = startCounter({ calibrateEveryMs: 3_600_000 })
    const request = saying(textOf('english'))
    const before = (await counter.count(request, [target], withoutTime)).tokens
    const learn = () => counter.learn(recordOf(target, before * 1.5), { request })
    learn()
    await eventually('the first report was taken in', async () => {
      return (await counter.count(request, [target], withoutTime)).tokens > before
    })
    const once = (await counter.count(request, [target], withoutTime)).tokens
    for (let turn = 0; turn < 20; turn++) learn()
    // A report is taken in by a timer of no time, so this one fires behind all of them.
    await new Promise((resolve) => setTimeout(resolve, 0))
    expect((await counter.count(request, [target], withoutTime)).tokens).toBe(once)
  })
})
