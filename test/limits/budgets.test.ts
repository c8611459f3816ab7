import { afterEach, beforeEach, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { createBudgetStore } from '#limits/budget-store.ts'
import { type BudgetScopes, type BudgetWarning, createBudgets } from '#limits/budgets.ts'
import { costNanosOf } from '#limits/prices.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'

const noBudgets: BudgetScopes = { default: {}, user: {}, group: {}, key: {} }
const prices = {
  big: { input_per_million: 3, cached_input_per_million: 0.3, output_per_million: 15 },
}

let database: TestDatabase
const opened: { close(): Promise<void> }[] = []

beforeEach(async () => {
  database = await openTestDatabase()
})
afterEach(async () => {
  for (const budgets of opened.splice(0)) await budgets.close()
  await database.close()
})

/** One process with these budgets. */
function open(scopes: Partial<BudgetScopes>, start = '2026-11-23T22:00:00Z') {
  let nowMs = 1_000
  let at = new Date(start)
  const warnings: BudgetWarning[] = []
  let isUnreachable = false
  const store = createBudgetStore(database)
  const budgets = createBudgets({
    scopes: () => all,
    prices: () => prices,
    store: {
      ...store,
      charge: (charges) =>
        isUnreachable ? Promise.reject(new Error('unreachable')) : store.charge(charges),
    },
    async warn(warning) {
      warnings.push(warning)
    },
    onRefused() {},
    log: quietLog,
    clockMs: () => nowMs,
    now: () => at,
  })
  const all = { ...noBudgets, ...scopes }
  opened.push(budgets)
  const callers = new Map<string, { userId: string; groups: string[] }>()
  const principalOf = (userId: string, groups: string[], keyId?: string) => {
    const id = `${userId} ${groups} ${keyId}`
    const credential = keyId === undefined ? undefined : { kind: 'api-key', keyId }
    const principal = { userId, groups, ...(credential === undefined ? {} : { credential }) }
    const known = callers.get(id) ?? principal
    callers.set(id, known)
    return known
  }
  const accountsOf = (userId: string, groups: string[] = [], keyId?: string) =>
    budgets.accountsOf(principalOf(userId, groups, keyId)) ?? []
  return {
    warnings,
    accountsOf,
    /** The error of a call; null if it may begin. */
    async refusal(...caller: Parameters<typeof accountsOf>): Promise<AppError | null> {
      try {
        await budgets.check(accountsOf(...caller))
        return null
      } catch (error) {
        if (error instanceof AppError) return error
        throw error
      }
    },
    use(tokens: number, ...caller: Parameters<typeof accountsOf>) {
      this.charge(accountsOf(...caller), tokens)
    },
    charge(accounts: ReturnType<typeof accountsOf>, tokens: number) {
      const used = { inputTokens: tokens, cachedTokens: 0, outputTokens: 0 }
      budgets.charge(accounts, 'big', used)
    },
    flush: budgets.flush,
    pass(seconds: number) {
      nowMs += seconds * 1_000
    },
    passTo(time: string) {
      at = new Date(time)
      nowMs += 1_000
    },
    cut(isCut: boolean) {
      isUnreachable = isCut
    },
  }
}

test('a used-up budget refuses until the next day, and names the time of the reset', async () => {
  const here = open({ default: { tokens_per_day: 100 } })
  expect(await here.refusal('alice')).toBeNull()
  here.use(100, 'alice')
  expect(await here.refusal('alice')).toMatchObject({
    kind: 'insufficient_quota',
    wireCode: 'budget_exceeded',
    retryAfterS: 7_200,
    message:
      'The budget of 100 tokens per day of this user is used up; it resets at 2026-11-24T00:00:00Z.',
  })
  expect(await here.refusal('bob')).toBeNull()
  here.passTo('2026-11-24T00:00:01Z')
  expect(await here.refusal('alice')).toBeNull()
})

test('a month ends with the year', async () => {
  const here = open({ default: { tokens_per_month: 1 } }, '2026-12-31T23:59:00Z')
  here.use(1, 'alice')
  expect((await here.refusal('alice'))?.message).toContain('resets at 2027-01-01T00:00:00Z')
})

test('money is counted by the prices of input, cached input and output', async () => {
  const used = { inputTokens: 1_000_000, cachedTokens: 400_000, outputTokens: 100_000 }
  expect(costNanosOf(prices, 'big', used)).toBe((0.6 * 3 + 0.4 * 0.3 + 0.1 * 15) * 1e9)
  expect(costNanosOf(prices, 'other', used)).toBeNull()
  expect(costNanosOf(prices, 'constructor', used)).toBeNull()
  const here = open({ default: { cost_per_day: 0.3 } })
  here.use(99_999, 'alice')
  expect(await here.refusal('alice')).toBeNull()
  here.use(1, 'alice')
  expect((await here.refusal('alice'))?.message).toContain('budget of 0.3 per day of this user')
})

test('a group shares its budget, and a key has its own', async () => {
  const here = open({
    group: { staff: { tokens_per_day: 100 } },
    key: { 'key-1': { tokens_per_day: 10 } },
  })
  here.use(60, 'alice', ['staff'])
  here.use(50, 'bob', ['staff'])
  expect((await here.refusal('carol', ['staff']))?.message).toContain('of the group "staff"')
  expect(await here.refusal('dora', ['guests'])).toBeNull()
  here.use(10, 'dora', [], 'key-1')
  expect((await here.refusal('dora', [], 'key-1'))?.message).toContain('of this API key')
  expect(await here.refusal('dora', [], 'key-2')).toBeNull()
})

test('use of other processes counts, and is read back after a restart', async () => {
  const budget = { default: { tokens_per_day: 100 } }
  const a = open(budget)
  const b = open(budget)
  expect(await a.refusal('alice')).toBeNull()
  b.use(70, 'alice')
  a.use(40, 'alice')
  await b.flush()
  await a.flush()
  expect(await a.refusal('alice')).not.toBeNull()
  const restarted = open(budget)
  expect(await restarted.refusal('alice')).not.toBeNull()
})

test('a soft budget warns once per period over all processes, and refuses nothing', async () => {
  const budget = { default: { soft_tokens_per_day: 10 } }
  const [a, b] = [open(budget), open(budget)]
  a.use(6, 'alice')
  await a.flush()
  expect(a.warnings).toEqual([])
  b.use(6, 'alice')
  await b.flush()
  b.use(1, 'alice')
  await b.flush()
  a.use(6, 'alice')
  await a.flush()
  await a.flush()
  const warned = { owner: { type: 'user', id: 'alice' }, period: '2026-11-23' }
  expect([...a.warnings, ...b.warnings]).toEqual([expect.objectContaining(warned)])
  expect(await a.refusal('alice')).toBeNull()
  a.passTo('2026-11-24T10:00:00Z')
  a.use(11, 'alice')
  await a.flush()
  await a.flush()
  expect([...a.warnings, ...b.warnings]).toHaveLength(2)
})

test('only the first warning of a period counts, whichever process sends it', async () => {
  const store = createBudgetStore(database)
  const [owner, period, at] = ['user:alice', '2026-11', new Date()]
  expect(await store.warn(owner, period, at)).toBe(false)
  await store.charge([{ owner, period, tokens: 1, costNanos: 0 }])
  expect(await store.warn(owner, period, at)).toBe(true)
  expect(await store.warn(owner, period, at)).toBe(false)
})

test('while the database is unreachable calls go on, and their use is written later', async () => {
  const here = open({ default: { tokens_per_day: 100 } })
  here.cut(true)
  expect(await here.refusal('alice')).toBeNull()
  here.use(60, 'alice')
  await here.flush()
  expect(await here.refusal('alice')).toBeNull()
  here.use(60, 'alice')
  // Its own use counts, although nothing could be read.
  expect(await here.refusal('alice')).not.toBeNull()
  here.cut(false)
  await here.flush()
  expect(await open({ default: { tokens_per_day: 121 } }).refusal('alice')).toBeNull()
  expect(await open({ default: { tokens_per_day: 120 } }).refusal('alice')).not.toBeNull()
})

test('a call that runs for longer than its counters are kept is counted with newer calls', async () => {
  const here = open({ default: { tokens_per_day: 110 } })
  const long = here.accountsOf('alice')
  await here.flush()
  here.pass(120)
  await here.flush()
  here.use(10, 'alice')
  here.charge(long, 99)
  expect(await here.refusal('alice')).toBeNull()
  here.charge(long, 1)
  expect(await here.refusal('alice')).toMatchObject({ kind: 'insufficient_quota' })
})

test('a long call alone exceeds a soft budget in the period of its counter', async () => {
  const here = open({ default: { soft_tokens_per_month: 50 } })
  const long = here.accountsOf('alice')
  await here.flush()
  here.pass(120)
  await here.flush()
  here.use(10, 'alice')
  here.charge(long, 45)
  await here.flush()
  expect(here.warnings).toMatchObject([{ period: '2026-11', tokens: 55 }])
})

test('without a budget nothing is counted', () => {
  const here = open({ group: { staff: { tokens_per_day: 1 } } })
  expect(here.accountsOf('alice', ['guests'])).toEqual([])
  expect(here.accountsOf('', ['staff'])).toEqual([])
})
