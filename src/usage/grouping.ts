import type { Page } from '#lib/page.ts'

const timeDimensions = ['hour', 'day', 'month'] as const
export const dimensionNames = [
  ...timeDimensions,
  'model',
  'user',
  'key',
  'agent',
  'upstream',
  'kind',
  'outcome',
] as const
/** What usage is grouped by. */
export type Dimension = (typeof dimensionNames)[number]

export function isTime(dimension: Dimension): boolean {
  const names: readonly string[] = timeDimensions
  return names.includes(dimension)
}

/** All given values must match. `from` is included, `to` is not. */
export type UsageFilter = {
  readonly from: Date
  readonly to: Date
  readonly user?: string | undefined
  readonly key?: string | undefined
  readonly agent?: string | undefined
  readonly model?: string | undefined
  readonly upstream?: string | undefined
  readonly kind?: string | undefined
  readonly outcome?: string | undefined
  /** Of single records only. */
  readonly requestId?: string | undefined
}

export type UsageGrouping = { readonly by: readonly Dimension[]; readonly filter: UsageFilter }

export type UsageSums = {
  readonly requests: number
  readonly estimated: number
  readonly retries: number
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly audioMs: number
  readonly costNanos: number | null
  readonly durationMs: number
}

/** `values`: one for each dimension, in order: an ISO time, a name, or an id (zero for none). */
export type UsageGroup = { readonly values: readonly string[]; readonly sums: UsageSums }

export type UsageTable = { readonly page: Page<UsageGroup>; readonly totals: UsageSums }

/** Stands for no user, key or agent in the hourly sums. */
export const noId = '00000000-0000-0000-0000-000000000000'

const hourMs = 3_600_000
export const dayMs = 24 * hourMs

/** The whole hours that contain this range: the sums know no smaller times. */
export function wholeHours({ from, to }: Pick<UsageFilter, 'from' | 'to'>) {
  return {
    from: new Date(Math.floor(from.getTime() / hourMs) * hourMs),
    to: new Date(Math.ceil(to.getTime() / hourMs) * hourMs),
  }
}

/** The whole days in UTC that this range contains; null for none. */
export function wholeDays({ from, to }: Pick<UsageFilter, 'from' | 'to'>) {
  const firstMs = Math.ceil(from.getTime() / dayMs) * dayMs
  const endMs = Math.floor(to.getTime() / dayMs) * dayMs
  return firstMs < endMs ? { from: new Date(firstMs), to: new Date(endMs) } : null
}
