import { expect, test } from 'bun:test'
import { createDice } from '#test/support/dice.ts'
import { createAdmitting, settle } from './admitting.ts'

const alice = { userId: 'alice' }
const bob = { userId: 'bob' }

test('without a limit that applies nothing is reserved', () => {
  const gate = createAdmitting({ scopes: { group: { staff: { requests_per_minute: 1 } } } })
  expect(gate.admit(alice)).toBeNull()
  expect(gate.rateLimits(alice)).toBeNull()
  expect(gate.meters.size()).toBe(0)
})

test('calls of the gateway itself are free', () => {
  const gate = createAdmitting({ scopes: { default: { requests_per_minute: 0 } } })
  expect(gate.admit({ userId: '' })).toBeNull()
  expect(gate.refusal(alice)?.kind).toBe('request_exceeds_limit')
})

test('requests beyond the limit are refused until use has decayed', () => {
  const gate = createAdmitting({ scopes: { default: { requests_per_minute: 3 } } })
  for (let at = 0; at < 3; at++) expect(gate.refusal(alice)).toBeNull()
  const refusal = gate.refusal(alice)
  expect(refusal).toMatchObject({ kind: 'rate_limit_exceeded', status: 429, retryAfterS: 20 })
  expect(refusal?.rateLimits?.requests).toMatchObject({ limit: 3, remaining: 0, resetS: 60 })
  expect(gate.refusal(bob)).toBeNull()
  gate.pass(19_999)
  expect(gate.refusal(alice)).not.toBeNull()
  gate.pass(1)
  expect(gate.refusal(alice)).toBeNull()
  expect(gate.refusal(alice)).not.toBeNull()
})

test('a request that one limit refuses uses nothing of the others', () => {
  const gate = createAdmitting({
    scopes: {
      default: { requests_per_minute: 10, input_tokens_per_minute: 100 },
      model: { small: { concurrent_generations: 0 } },
    },
  })
  for (let at = 0; at < 50; at++) {
    expect(gate.refusal(alice, { model: 'small', inputTokens: 50 })).not.toBeNull()
  }
  expect(gate.rateLimits(alice)).toMatchObject({
    requests: { remaining: 10 },
    inputTokens: { remaining: 100 },
  })
})

test('tokens are reserved by the estimate and settled by the usage', () => {
  const gate = createAdmitting({
    scopes: { default: { input_tokens_per_minute: 1_000, output_tokens_per_minute: 100 } },
  })
  const first = gate.admit(alice, { inputTokens: 600, outputTokens: 40 })
  expect(gate.refusal(alice, { inputTokens: 600 })?.message).toContain('input tokens per minute')
  settle(first, { input: 100, output: 160 })
  expect(gate.rateLimits(alice)?.inputTokens?.remaining).toBe(900)
  // 60 tokens of debt: 60 s of 100 per minute until one token is available again is 36.6 s.
  expect(gate.refusal(alice)).toMatchObject({ retryAfterS: 37 })
  gate.pass(37_000)
  expect(gate.refusal(alice)).toBeNull()
})

test('a call that failed before its output gives its tokens back, but not its request', () => {
  const gate = createAdmitting({
    scopes: { default: { requests_per_minute: 5, input_tokens_per_minute: 100 } },
  })
  settle(gate.admit(alice, { inputTokens: 90 }), null)
  expect(gate.rateLimits(alice)).toMatchObject({
    requests: { remaining: 4 },
    inputTokens: { remaining: 100 },
  })
})

test('a request larger than the limit is refused for good', () => {
  const gate = createAdmitting({ scopes: { default: { input_tokens_per_minute: 100 } } })
  const refusal = gate.refusal(alice, { inputTokens: 101 })
  expect(refusal).toMatchObject({
    kind: 'request_exceeds_limit',
    status: 429,
    wireCode: 'rate_limit_exceeded',
    retryAfterS: undefined,
  })
})

test('an estimate of the output above the limit is admitted when nothing is used', () => {
  const gate = createAdmitting({ scopes: { default: { output_tokens_per_minute: 10 } } })
  expect(gate.refusal(alice, { outputTokens: 400 })).toBeNull()
  expect(gate.refusal(alice, { outputTokens: 1 })).not.toBeNull()
})

test('a further turn of a request is not refused, and its tokens count', () => {
  const gate = createAdmitting({
    scopes: { default: { requests_per_minute: 1, input_tokens_per_minute: 10 } },
  })
  gate.admit(alice, { inputTokens: 10 })
  expect(gate.refusal(alice, { inputTokens: 20, continues: true })).toBeNull()
  // 20 of debt and the call's own token are 126 s at 10 per minute.
  expect(gate.refusal(alice)).toMatchObject({ retryAfterS: 126 })
})

test('slots are released when their call ends, and embeddings need none', () => {
  const gate = createAdmitting({ scopes: { default: { concurrent_generations: 2 } } })
  const first = gate.admit(alice)
  gate.admit(alice)
  expect(gate.refusal(alice)?.message).toContain('2 generations at the same time')
  expect(gate.refusal(alice, { kind: 'embed' })).toBeNull()
  settle(first, null)
  expect(gate.refusal(alice)).toBeNull()
  expect(gate.refusal(alice)).not.toBeNull()
})

test('a user has the limits of the user, else the most generous of the groups, else the defaults', () => {
  const gate = createAdmitting({
    scopes: {
      default: { requests_per_minute: 1, concurrent_generations: 7 },
      group: { staff: { requests_per_minute: 4 }, guests: { requests_per_minute: 2 } },
      user: { root: { requests_per_minute: 9 } },
    },
  })
  const limitOf = (userId: string, groups: readonly string[]) =>
    gate.rateLimits({ userId, groups })?.requests?.limit
  expect(limitOf('a', [])).toBe(1)
  expect(limitOf('b', ['guests'])).toBe(2)
  expect(limitOf('c', ['guests', 'staff', 'others'])).toBe(4)
  expect(limitOf('root', ['staff'])).toBe(9)
  for (let at = 0; at < 2; at++) gate.admit({ userId: 'd', groups: ['guests'] })
  expect(gate.refusal({ userId: 'd', groups: ['guests'] })).not.toBeNull()
  expect(gate.refusal({ userId: 'e', groups: ['guests'] })).toBeNull()
})

test('a key has its limits beside those of its user, and a model is shared by all', () => {
  const gate = createAdmitting({
    scopes: { default: { requests_per_minute: 3 }, model: { big: { requests_per_minute: 4 } } },
  })
  const key = { userId: 'alice', keyId: 'key-1', limits: { requests_per_minute: 1 } }
  expect(gate.refusal(key)).toBeNull()
  expect(gate.refusal(key)?.message).toContain('of this API key')
  expect(gate.refusal(alice, { model: 'big' })).toBeNull()
  expect(gate.refusal(alice, { model: 'big' })).toBeNull()
  expect(gate.refusal(alice, { model: 'big' })?.message).toContain('of this user')
  expect(gate.refusal(bob, { model: 'big' })).toBeNull()
  expect(gate.refusal(bob, { model: 'big' })).toBeNull()
  expect(gate.refusal(bob, { model: 'big' })?.message).toContain('of this model')
  expect(gate.refused).toEqual([
    'key requests_per_minute',
    'user requests_per_minute',
    'model requests_per_minute',
  ])
})

test('a changed limit holds from the next call on, and use is kept', () => {
  const gate = createAdmitting({ scopes: { default: { requests_per_minute: 2 } } })
  gate.admit(alice)
  gate.admit(alice)
  expect(gate.refusal(alice)).not.toBeNull()
  gate.configure({ default: { requests_per_minute: 4 } })
  expect(gate.rateLimits(alice)?.requests).toMatchObject({ limit: 4, remaining: 2 })
  gate.configure({ default: { requests_per_minute: 1 } })
  expect(gate.refusal(alice)).not.toBeNull()
  gate.configure({})
  expect(gate.admit(alice)).toBeNull()
})

test('idle users are forgotten, users with use in force are not', () => {
  const gate = createAdmitting({ scopes: { default: { requests_per_minute: 2 } } })
  for (let at = 0; at < 20_000; at++) {
    gate.pass(60_000 / 4)
    // The steady user uses half of the limit all the time.
    if (at % 2 === 0) settle(gate.admit(alice), null)
    settle(gate.admit({ userId: `visitor-${at}` }), null)
  }
  expect(gate.meters.size()).toBeLessThan(1_100)
  gate.pass(60_000)
  for (let at = 0; at < 2; at++) settle(gate.admit(alice), null)
  for (let at = 0; at < 3_000; at++) gate.admit({ userId: `other-${at}` })
  expect(gate.refusal(alice)).not.toBeNull()
})

test('over random schedules no window admits more than the limit and its refill', () => {
  for (let seed = 1; seed <= 40; seed++) {
    const { upTo } = createDice(seed)
    const limit = 1 + upTo(30)
    const slots = 1 + upTo(5)
    const gate = createAdmitting({
      scopes: { default: { requests_per_minute: limit, concurrent_generations: slots } },
    })
    const admittedAtMs: number[] = []
    const running: ReturnType<typeof gate.admit>[] = []
    for (let step = 0; step < 400; step++) {
      gate.pass(upTo(3_000))
      const isEnding = running.length > 0 && upTo(3) === 0
      if (isEnding) settle(running.splice(upTo(running.length), 1)[0] ?? null, null)
      const admitted = gate.tryAdmit(alice)
      if (admitted === null) continue
      running.push(admitted)
      admittedAtMs.push(gate.nowMs())
      expect(running.length).toBeLessThanOrEqual(slots)
    }
    expect(admittedAtMs.length).toBeGreaterThan(0)
    for (const [from, fromMs] of admittedAtMs.entries()) {
      for (const [offset, toMs] of admittedAtMs.slice(from).entries()) {
        expect(offset + 1).toBeLessThanOrEqual(limit + ((toMs - fromMs) * limit) / 60_000 + 1e-6)
      }
    }
  }
})
