import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { createKeySet, type KeySet, type KeySetOptions } from '#auth/jwks.ts'
import { createSigningKey, toJwk } from '#test/support/identity-provider.ts'

/** When key sets are fetched. The clock advances by hand, and the provider responds in memory. */
const [first, second] = [createSigningKey('first'), createSigningKey('second')]
const firstHeader = { alg: 'RS256', kid: 'first' }
const secondHeader = { alg: 'RS256', kid: 'second' }
const unpublished = 'does not publish'
const unreachable = 'is unreachable'

let keySet: KeySet

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  keySet.close()
  jest.useRealTimers()
})

type Answer = () => Promise<Response> | Response

function start(options: Partial<KeySetOptions> = {}, answer: Answer = () => publish(first)) {
  const provider = { requests: 0, signals: [] as AbortSignal[], answer }
  const warn = jest.fn()
  keySet = createKeySet({
    url: 'https://provider.test/jwks',
    fetch: Object.assign(
      async (_url: unknown, init?: RequestInit) => {
        provider.requests += 1
        if (init?.signal) provider.signals.push(init.signal)
        expect(init).toMatchObject({ redirect: 'error', headers: { accept: 'application/json' } })
        return provider.answer()
      },
      { preconnect: fetch.preconnect },
    ),
    log: { warn, info() {} },
    ageMaxMs: 3_600_000,
    ...options,
  })
  return { provider, warn }
}

const publish = (...keys: (typeof first)[]) => Response.json({ keys: keys.map(toJwk) })

function goDown(): Promise<Response> {
  return Promise.reject(new Error('connection refused'))
}

/** Lets a fetch that a timer began come to its end. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
}

async function advance(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms)
  await settle()
}

test('tokens with unknown keys cause one fetch per cool-down', async () => {
  const { provider } = start()
  await keySet.keyFor(firstHeader)
  expect(provider.requests).toBe(1)
  for (let turn = 0; turn < 5; turn++) {
    await expect(keySet.keyFor(secondHeader)).rejects.toThrow(unpublished)
  }
  expect(provider.requests).toBe(2)
  provider.answer = () => publish(first, second)
  await advance(29_999)
  await expect(keySet.keyFor(secondHeader)).rejects.toThrow(unpublished)
  expect(provider.requests).toBe(2)
  await advance(1)
  await keySet.keyFor(secondHeader)
  await keySet.keyFor(secondHeader)
  expect(provider.requests).toBe(3)
})

test('10,000 tokens with different unknown keys at once cause one fetch', async () => {
  const { provider } = start()
  await keySet.keyFor(firstHeader)
  const refusals = await Promise.all(
    Array.from({ length: 10_000 }, (_, index) =>
      keySet.keyFor({ alg: 'RS256', kid: `unknown ${index}` }).catch(String),
    ),
  )
  expect([...new Set(refusals)]).toEqual([expect.stringContaining(unpublished)])
  expect(provider.requests).toBe(2)
})

test('known keys are found while a search for an unknown one takes its time', async () => {
  const { provider } = start()
  await keySet.keyFor(firstHeader)
  const answer = Promise.withResolvers<Response>()
  provider.answer = () => answer.promise
  const searches = [keySet.keyFor(secondHeader), keySet.keyFor(secondHeader)]
  await keySet.keyFor(firstHeader)
  answer.resolve(publish(second))
  await Promise.all(searches)
  expect(provider.requests).toBe(2)
})

test('keys are refreshed every ten minutes', async () => {
  const { provider } = start()
  await keySet.keyFor(firstHeader)
  for (const requests of [2, 3, 4]) {
    await advance(599_999)
    expect(provider.requests).toBe(requests - 1)
    await advance(1)
    expect(provider.requests).toBe(requests)
  }
  expect(keySet.version()).toBe(1)
  provider.answer = () => publish(second)
  await advance(600_000)
  expect(keySet.version()).toBe(2)
})

test('a failed refresh is tried again after ten seconds, and the last set is used meanwhile', async () => {
  const { provider, warn } = start()
  await keySet.keyFor(firstHeader)
  provider.answer = goDown
  await advance(600_000)
  expect(warn.mock.calls).toEqual([
    ['JWKS fetch failed', { error: new Error('connection refused') }],
  ])
  await keySet.keyFor(firstHeader)
  await advance(9_999)
  expect(provider.requests).toBe(2)
  await advance(1)
  expect(provider.requests).toBe(3)
  provider.answer = () => publish(first)
  await advance(10_000)
  expect(provider.requests).toBe(4)
  await advance(10_000)
  expect(provider.requests).toBe(4)
})

test('the last set is used for as long as its age allows', async () => {
  const { provider } = start({ ageMaxMs: 605_000 })
  await keySet.keyFor(firstHeader)
  provider.answer = goDown
  await advance(600_000)
  await advance(5_000)
  await keySet.keyFor(firstHeader)
  await advance(1)
  await expect(keySet.keyFor(firstHeader)).rejects.toMatchObject({
    kind: 'service_unavailable',
    retryAfterS: 5,
  })
})

test('without a set, tokens cause one fetch per second', async () => {
  const { provider } = start({}, goDown)
  await expect(keySet.keyFor(firstHeader)).rejects.toThrow(unreachable)
  const before = provider.requests
  for (let turn = 0; turn < 5; turn++) {
    await expect(keySet.keyFor(firstHeader)).rejects.toThrow(unreachable)
  }
  expect(provider.requests).toBe(before)
  await advance(1_000)
  provider.answer = () => publish(first)
  await keySet.keyFor(firstHeader)
  expect(provider.requests).toBe(before + 1)
})

test.each<[string, () => Response]>([
  ['an error status', () => new Response('{"keys":[{}]}', { status: 500 })],
  ['no JSON', () => new Response('<html>')],
  ['no object', () => Response.json([])],
  ['no list of keys', () => Response.json({ keys: {} })],
  ['no keys', () => Response.json({ keys: [] })],
  ['more than a mebibyte', () => Response.json({ keys: [{}], padding: 'x'.repeat(1_048_576) })],
  ['an empty body', () => new Response(null)],
])('%s is no key set', async (_name, answer) => {
  const { provider, warn } = start()
  await keySet.keyFor(firstHeader)
  provider.answer = answer
  await advance(600_000)
  // Reading a body takes turns of the event loop, not only promises.
  while (warn.mock.calls.length === 0) await new Promise(setImmediate)
  expect(keySet.version()).toBe(1)
  await keySet.keyFor(firstHeader)
})

test('a key set may have a whole mebibyte', async () => {
  const { provider } = start()
  await keySet.keyFor(firstHeader)
  const shortest = JSON.stringify({ keys: [toJwk(second)], padding: '' })
  const padding = 'x'.repeat(1_048_576 - shortest.length)
  provider.answer = () => Response.json({ keys: [toJwk(second)], padding })
  await advance(600_000)
  while (keySet.version() === 1) await new Promise(setImmediate)
  await keySet.keyFor(secondHeader)
})

test('a token that fits several keys is refused with a reason', async () => {
  start({}, () => publish(first, second))
  await expect(keySet.keyFor({ alg: 'RS256' })).rejects.toThrow('does not say which key')
})

test('a closed key set fetches no more, and ends its request without a warning', async () => {
  const { provider, warn } = start()
  await keySet.keyFor(firstHeader)
  provider.answer = () => {
    const [signal] = provider.signals.slice(-1)
    return new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  }
  await advance(600_000)
  expect(provider.signals.at(-1)?.aborted).toBe(false)
  keySet.close()
  expect(provider.signals.at(-1)?.aborted).toBe(true)
  await advance(6_000_000)
  expect(provider.requests).toBe(2)
  expect(warn).not.toHaveBeenCalled()
})
