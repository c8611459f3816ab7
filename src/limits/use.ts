import { isUuid } from '#lib/uuid.ts'
import { type BudgetScopes, resetOf } from './budgets.ts'
import type { BudgetValues, LimitValues } from './config.ts'
import { type Meters, periodsMs } from './meters.ts'
import { grantOf, type LimitScopes, limitNames } from './plans.ts'
import { nanosPerUnit } from './prices.ts'
import type { BudgetUse, Owners, Prefixes, StoredUse, UseStore } from './use-store.ts'

export const useScopes = ['user', 'group', 'key', 'model'] as const
type UseScope = (typeof useScopes)[number]
type Owner = { readonly scope: UseScope; readonly id: string }

/** How much of one limit or budget is used. */
export type LimitUse = Owner & {
  readonly name: string | null
  readonly kind: 'limit' | 'budget'
  readonly limit: keyof LimitValues | keyof BudgetValues
  readonly max: number
  readonly used: number
  /** Of `max`; above 1 for debt. */
  readonly share: number
  /** A soft budget only warns. */
  readonly isHard: boolean
  /** When nothing is used; null for slots, which are free when their work ends. */
  readonly resetsAt: Date | null
  /** The entry of the settings, or the key, that sets it. */
  readonly from: { readonly scope: UseScope | 'default'; readonly id: string | null }
}

/** `owners`: exactly these, also what they have not used; otherwise those with use, of one scope or all. */
export type UseFilter = {
  readonly owners?: readonly Owner[] | undefined
  readonly scope?: UseScope | undefined
  readonly countMax: number
}

export type LimitUses = ReturnType<typeof createLimitUses>

type Candidate = Owner & {
  readonly limit: keyof LimitValues
  readonly share: number | null
  readonly used: number | null
}

const slotNames: ReadonlySet<string> = new Set(['concurrent_generations', 'speech_sessions'])
/** Stored bytes are counted with the files, not here. */
const meteredNames = limitNames.filter((name) => name !== 'stored_bytes')

/** Reads how much of limits and budgets is used, by all processes. */
export function createLimitUses(deps: {
  /** Null: other processes count, too, and the database has the sums. */
  meters: Pick<Meters, 'rates' | 'slots'> | null
  limits: () => LimitScopes
  budgets: () => BudgetScopes
  store: UseStore
  clockMs: () => number
  now: () => Date
}) {
  const { meters, store } = deps

  const usedLimits = async (prefixes: Prefixes, countMax: number): Promise<Candidate[]> => {
    const [rates, slots] =
      meters === null
        ? await Promise.all([store.rates(prefixes, countMax), store.slots(prefixes, countMax)])
        : readMeters(meters, { prefixes, countMax, nowMs: deps.clockMs() })
    return [
      ...rates.flatMap(({ key, share }) => candidateOf(key, { share, used: null })),
      ...slots.flatMap(({ key, used }) => candidateOf(key, { share: null, used })),
    ]
  }

  const usedBudgets = (prefixes: Prefixes, countMax: number): Promise<readonly BudgetUse[]> => {
    const { user, group, key } = deps.budgets()
    const owners = Object.entries({ user, group, key }).flatMap(([scope, entries]) =>
      Object.keys(entries).map((id) => `${scope}:${id}`),
    )
    return store.budgets(periodsAt(deps.now()), { prefixes, owners, countMax })
  }

  return {
    /** The fullest first. */
    async list({ owners, scope, countMax }: UseFilter): Promise<LimitUse[]> {
      const prefixes =
        owners?.map((owner) => `${owner.scope}:${owner.id}:`) ??
        (scope === undefined ? null : [`${scope}:`])
      const [known, spent] = await Promise.all([
        usedLimits(prefixes, countMax),
        usedBudgets(prefixes, countMax),
      ])
      const candidates = [...known, ...(owners ?? []).flatMap((owner) => unusedOf(owner, known))]
      const budgets = [
        ...spent,
        ...(owners ?? []).flatMap((owner) => unspentOf(owner, spent, deps.now())),
      ]
      const ids = [...candidates, ...budgets.map(({ owner }) => ownerOf(owner))]
      const found = await store.owners({ users: idsOf(ids, 'user'), keys: idsOf(ids, 'key') })
      const uses = [
        ...candidates.flatMap((candidate) => limitUse(candidate, found, deps)),
        ...budgets.flatMap((use) => budgetUses(use, found, deps.budgets())),
      ]
      return uses.toSorted((one, other) => other.share - one.share).slice(0, countMax)
    },
  }
}

/** Of a process that counts alone. */
function readMeters(
  { rates, slots }: Pick<Meters, 'rates' | 'slots'>,
  { prefixes, countMax, nowMs }: { prefixes: Prefixes; countMax: number; nowMs: number },
): [StoredUse[], Pick<StoredUse, 'key' | 'used'>[]] {
  const isWithin = (key: string) =>
    prefixes === null || prefixes.some((prefix) => key.startsWith(prefix))
  const used: StoredUse[] = []
  for (const [key, meter] of rates) {
    if (!isWithin(key)) continue
    const amount = meter.used(nowMs)
    if (amount > 0) used.push({ key, used: amount, share: shareOf(amount, meter.limit) })
  }
  const taken = [...slots.values()].filter(({ key, inUse }) => inUse > 0 && isWithin(key))
  return [
    used.toSorted((one, other) => other.share - one.share).slice(0, countMax),
    taken
      .map(({ key, inUse }) => ({ key, used: inUse }))
      .toSorted((one, other) => other.used - one.used)
      .slice(0, countMax),
  ]
}

/** `user:ID:requests_per_minute`; names of models may contain colons. */
function candidateOf(key: string, use: Pick<Candidate, 'share' | 'used'>): Candidate[] {
  const end = key.lastIndexOf(':')
  const limit = meteredNames.find((name) => name === key.slice(end + 1))
  return limit === undefined ? [] : [{ ...ownerOf(key.slice(0, end)), limit, ...use }]
}

function ownerOf(text: string): Owner {
  const end = text.indexOf(':')
  const scope = useScopes.find((name) => name === text.slice(0, end)) ?? 'user'
  return { scope, id: text.slice(end + 1) }
}

function unusedOf({ scope, id }: Owner, known: readonly Candidate[]): Candidate[] {
  const isKnown = (limit: string) =>
    known.some((one) => one.limit === limit && one.scope === scope && one.id === id)
  if (scope === 'group') return []
  return meteredNames
    .filter((limit) => !isKnown(limit))
    .map((limit) => ({ scope, id, limit, share: 0, used: 0 }))
}

function unspentOf({ scope, id }: Owner, spent: readonly BudgetUse[], at: Date): BudgetUse[] {
  const owner = `${scope}:${id}`
  return periodsAt(at)
    .filter((period) => !spent.some((use) => use.owner === owner && use.period === period))
    .map((period) => ({ owner, period, tokens: 0, costNanos: 0 }))
}

/** The day and the month, in UTC. */
function periodsAt(at: Date): [string, string] {
  const text = at.toISOString()
  return [text.slice(0, 10), text.slice(0, 7)]
}

function idsOf(owners: readonly Owner[], scope: UseScope): string[] {
  const ids = owners.filter((owner) => owner.scope === scope && isUuid(owner.id))
  return [...new Set(ids.map(({ id }) => id))]
}

function limitUse(
  { scope, id, limit, ...use }: Candidate,
  { users, keys }: Owners,
  {
    limits,
    clockMs: _,
    now,
  }: { limits: () => LimitScopes; clockMs: () => number; now: () => Date },
): LimitUse[] {
  const user = users.get(id)
  const maxOf = (values: LimitValues | undefined) =>
    values?.[limit] === undefined ? null : { max: values[limit], from: { scope, id } }
  const grant =
    scope === 'user'
      ? grantOf(limits(), { userId: id, groups: user?.groups ?? [] }, limit)
      : maxOf(scope === 'key' ? keys.get(id)?.limits : limits().model[id])
  if (grant === null) return []
  const { max, from } = grant
  const share = use.share ?? shareOf(use.used ?? 0, max)
  const periodMs = (periodsMs as Partial<Record<string, number>>)[limit]
  return [
    {
      scope,
      id,
      name:
        scope === 'user'
          ? (user?.name ?? null)
          : scope === 'key'
            ? (keys.get(id)?.name ?? null)
            : id,
      kind: 'limit',
      limit,
      max,
      used: slotNames.has(limit) ? (use.used ?? 0) : Math.ceil(share * max),
      share,
      isHard: true,
      resetsAt:
        periodMs === undefined || share === 0
          ? null
          : new Date(now().getTime() + Math.ceil(share * periodMs)),
      from,
    },
  ]
}

const budgetNames = {
  day: ['tokens_per_day', 'cost_per_day', 'soft_tokens_per_day', 'soft_cost_per_day'],
  month: ['tokens_per_month', 'cost_per_month', 'soft_tokens_per_month', 'soft_cost_per_month'],
} as const

function budgetUses(
  { owner, period, tokens, costNanos }: BudgetUse,
  { users, keys }: Owners,
  { default: everyone, user, group, key }: BudgetScopes,
): LimitUse[] {
  const { scope, id } = ownerOf(owner)
  const own = (scope === 'user' ? user : scope === 'group' ? group : scope === 'key' ? key : {})[id]
  const values = scope === 'user' ? { ...everyone, ...own } : (own ?? {})
  const names = period.length === 10 ? budgetNames.day : budgetNames.month
  return names.flatMap((limit): LimitUse[] => {
    const max = values[limit]
    if (max === undefined) return []
    const used = limit.includes('cost') ? costNanos / nanosPerUnit : tokens
    return [
      {
        scope,
        id,
        name: scope === 'group' ? id : ((scope === 'user' ? users : keys).get(id)?.name ?? null),
        kind: 'budget',
        limit,
        max,
        used,
        share: shareOf(used, max),
        isHard: !limit.startsWith('soft_'),
        resetsAt: resetOf(period),
        from: own?.[limit] === undefined ? { scope: 'default', id: null } : { scope, id },
      },
    ]
  })
}

/** A limit of zero is always reached. */
function shareOf(used: number, max: number): number {
  return max === 0 ? 1 : used / max
}
