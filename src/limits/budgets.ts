import { type CallInput, estimateInput, estimateUsage } from '#inference/call-estimate.ts'
import type { Reservation } from '#inference/inference.ts'
import { type CallRecord, servedModelOf } from '#inference/open-call.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Log } from '#telemetry/log.ts'
import { type Counter, createBudgetCounters, usedOf } from './budget-counters.ts'
import type { BudgetStore } from './budget-store.ts'
import type { BudgetValues, ModelPrice } from './config.ts'
import { hasValues } from './plans.ts'
import { type ChargedTokens, costNanosOf, nanosPerUnit } from './prices.ts'

export type BudgetScopes = {
  readonly default: BudgetValues
  readonly user: Readonly<Record<string, BudgetValues>>
  readonly group: Readonly<Record<string, BudgetValues>>
  readonly key: Readonly<Record<string, BudgetValues>>
}
export type BudgetOwner = { readonly type: 'user' | 'group' | 'key'; readonly id: string }

/** A soft budget that was exceeded for the first time in its period. */
export type BudgetWarning = {
  readonly owner: BudgetOwner
  readonly period: string
  readonly tokens: number
  readonly cost: number
  readonly budget: BudgetValues
}

/** The counters of one budget of a caller. */
export type Account = {
  readonly owner: BudgetOwner
  readonly budget: BudgetValues
  readonly day: Counter
  readonly month: Counter
}

type CachedAccounts = {
  readonly day: string
  readonly generation: number
  readonly accounts: readonly Account[] | null
}

const dayChars = 10
const monthChars = 7

export type Budgets = ReturnType<typeof createBudgets>

/** Budgets per day and month (UTC). Calls that run when a budget is used up end normally. */
export function createBudgets(deps: {
  scopes: () => BudgetScopes
  prices: () => Readonly<Record<string, ModelPrice>>
  store: BudgetStore
  warn: (warning: BudgetWarning) => Promise<void>
  /** A call is refused because this owner's budget is used up. */
  onRefused: (owner: BudgetOwner) => void
  log: Pick<Log, 'warn'>
  clockMs: () => number
  now: () => Date
}) {
  const { scopes, prices, store, log, clockMs, now } = deps
  let cache = new WeakMap<RequestPrincipal, CachedAccounts>()
  let lastScopes: BudgetScopes | null = null
  let isConfigured = false
  /** Soft budgets that calls of this process have exceeded. */
  const exceeded = new Map<string, { account: Account; counter: Counter }>()

  const warnAll = async () => {
    for (const [key, { account, counter }] of exceeded) {
      const { owner, period, stored } = counter
      // Its row is written with the next flush.
      if (stored.tokens === 0 && stored.costNanos === 0) continue
      if (!counter.isWarned && (await store.warn(owner, period, now()))) {
        const { tokens, costNanos } = usedOf(counter)
        const { owner, budget } = account
        await deps.warn({ owner, period, tokens, cost: costNanos / nanosPerUnit, budget })
      }
      counter.isWarned = true
      exceeded.delete(key)
    }
  }
  const refuseUsedUp = (accounts: readonly Account[]) => {
    const found = findUsedUp(accounts)
    if (found === null) return
    deps.onRefused(found.owner)
    throw usedUp(found, now())
  }
  const counters = createBudgetCounters({ store, onFlushed: warnAll, log, clockMs, now })

  const build = (principal: RequestPrincipal, day: string): readonly Account[] | null => {
    const accounts = budgetsOf(scopes(), principal).map(({ owner, budget }) => {
      const name = `${owner.type}:${owner.id}`
      const month = day.slice(0, monthChars)
      return { owner, budget, day: counters.of(name, day), month: counters.of(name, month) }
    })
    return accounts.length === 0 ? null : accounts
  }

  return {
    /** Null: no budget applies, as for the gateway's own calls. */
    accountsOf(principal: RequestPrincipal): readonly Account[] | null {
      const current = scopes()
      if (current !== lastScopes) {
        lastScopes = current
        isConfigured = hasValues(current)
        cache = new WeakMap()
      }
      if (!isConfigured || principal.userId === '') return null
      const day = now().toISOString().slice(0, dayChars)
      const generation = counters.generation()
      const cached = cache.get(principal)
      if (cached?.day === day && cached.generation === generation) return cached.accounts
      const accounts = build(principal, day)
      cache.set(principal, { day, generation, accounts })
      return accounts
    },

    /**
     * Throws `insufficient_quota` if a budget is used up. A promise if the use so far has to be read
     * first; while the database is unreachable, calls count from zero in this process.
     */
    check(accounts: readonly Account[]): Promise<void> | null {
      const isLoaded = accounts.every(({ day, month }) => day.isLoaded && month.isLoaded)
      if (isLoaded || counters.isFailing()) {
        refuseUsedUp(accounts)
        return null
      }
      return counters.load().then(() => refuseUsedUp(accounts))
    },

    /** Counts what a call used. */
    charge(accounts: readonly Account[], model: string, used: ChargedTokens): void {
      const use = {
        tokens: used.inputTokens + used.outputTokens,
        costNanos: costNanosOf(prices(), model, used) ?? 0,
      }
      const nowMs = clockMs()
      for (const account of accounts) {
        for (const given of [account.day, account.month]) {
          const counter = counters.add(given, use, nowMs)
          if (!counter.isWarned && isPastSoft(account.budget, counter)) {
            exceeded.set(counter.key, { account, counter })
          }
        }
      }
    },

    size: counters.size,
    flush: counters.flush,
    close: counters.close,
  }
}

/** Every budget of a user, of the credential, and of the groups. */
function budgetsOf(
  { default: everyone, user, group, key }: BudgetScopes,
  { userId, groups, credential }: RequestPrincipal,
): { readonly owner: BudgetOwner; readonly budget: BudgetValues }[] {
  const { keyId } = credential ?? {}
  const ofKey = keyId === undefined ? undefined : key[keyId]
  const found = [
    { owner: { type: 'user', id: userId } as const, budget: { ...everyone, ...user[userId] } },
    ...groups.flatMap((id) => {
      const budget = Object.hasOwn(group, id) ? group[id] : undefined
      return budget === undefined ? [] : [{ owner: { type: 'group', id } as const, budget }]
    }),
    ...(keyId === undefined || ofKey === undefined
      ? []
      : [{ owner: { type: 'key', id: keyId } as const, budget: ofKey }]),
  ]
  return found.filter(({ budget }) => Object.keys(budget).length > 0)
}

function isOfDay({ period }: Counter): boolean {
  return period.length === dayChars
}

type Budget = { readonly tokens: number | undefined; readonly cost: number | undefined }

function isOver(counter: Counter, { tokens, cost }: Budget): boolean {
  const used = usedOf(counter)
  return (
    used.tokens >= (tokens ?? Number.POSITIVE_INFINITY) ||
    used.costNanos >= (cost ?? Number.POSITIVE_INFINITY) * nanosPerUnit
  )
}

function isPastSoft(budget: BudgetValues, counter: Counter): boolean {
  return isOver(
    counter,
    isOfDay(counter)
      ? { tokens: budget.soft_tokens_per_day, cost: budget.soft_cost_per_day }
      : { tokens: budget.soft_tokens_per_month, cost: budget.soft_cost_per_month },
  )
}

type UsedUp = { readonly owner: BudgetOwner; readonly counter: Counter; readonly limit: Budget }

function findUsedUp(accounts: readonly Account[]): UsedUp | null {
  for (const { owner, budget, day, month } of accounts) {
    const ofDay = { tokens: budget.tokens_per_day, cost: budget.cost_per_day }
    if (isOver(day, ofDay)) return { owner, counter: day, limit: ofDay }
    const ofMonth = { tokens: budget.tokens_per_month, cost: budget.cost_per_month }
    if (isOver(month, ofMonth)) return { owner, counter: month, limit: ofMonth }
  }
  return null
}

function usedUp({ owner, counter, limit }: UsedUp, at: Date): AppError {
  const resetAt = resetOf(counter.period)
  const amount =
    usedOf(counter).tokens >= (limit.tokens ?? Number.POSITIVE_INFINITY)
      ? `${limit.tokens} tokens`
      : `${limit.cost}`
  const whose = { user: 'this user', group: `the group "${owner.id}"`, key: 'this API key' }
  return new AppError(
    'insufficient_quota',
    `The budget of ${amount} per ${isOfDay(counter) ? 'day' : 'month'} of ${whose[owner.type]} is used up; it resets at ${resetAt.toISOString().replace('.000Z', 'Z')}.`,
    {
      code: 'budget_exceeded',
      retryAfterS: Math.max(1, (resetAt.getTime() - at.getTime()) / 1_000),
    },
  )
}

/** The start of the next day or month, in UTC. */
export function resetOf(period: string): Date {
  const [year = 0, month = 1, day] = period.split('-').map(Number)
  const reset = day === undefined ? Date.UTC(year, month, 1) : Date.UTC(year, month - 1, day + 1)
  return new Date(reset)
}

/** Charges the budgets of a call when it ends, and settles what else it holds. */
export class BudgetReservation implements Reservation {
  readonly #inner: Reservation | null
  readonly #budgets: Pick<Budgets, 'charge'>
  readonly #accounts: readonly Account[]
  readonly #input: CallInput

  constructor(
    inner: Reservation | null,
    budgets: Pick<Budgets, 'charge'>,
    accounts: readonly Account[],
    input: CallInput,
  ) {
    this.#inner = inner
    this.#budgets = budgets
    this.#accounts = accounts
    this.#input = input
  }

  settle(record: CallRecord): void {
    this.#inner?.settle(record)
    const used = record.usage ?? estimateUsage(record, estimateInput(this.#input))
    this.#budgets.charge(this.#accounts, servedModelOf(record), used)
  }
}
