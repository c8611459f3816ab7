import type { UsageGroup, UsageSums } from '../../api/generated/types.ts'

export type Span = '24h' | '7d' | '30d' | '90d'
export type Measure = 'requests' | 'tokens' | 'audio' | 'cost'
export const spans: readonly Span[] = ['24h', '7d', '30d', '90d']

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const steps: Readonly<Record<Span, number>> = { '24h': 24, '7d': 7, '30d': 30, '90d': 90 }

export type Period = {
  readonly unit: 'hour' | 'day'
  readonly from: string
  readonly to: string
  /** The beginning of each hour or day, in UTC. */
  readonly starts: readonly string[]
}

/** Whole hours or days that end with the current one. */
export function periodOf(span: Span, nowMs: number): Period {
  const unit = span === '24h' ? 'hour' : 'day'
  const stepMs = unit === 'hour' ? hourMs : dayMs
  const endMs = (Math.floor(nowMs / stepMs) + 1) * stepMs
  const count = steps[span]
  const starts = Array.from({ length: count }, (_, at) =>
    new Date(endMs - (count - at) * stepMs).toISOString(),
  )
  return { unit, starts, from: starts[0] ?? '', to: new Date(endMs).toISOString() }
}

export function measured(sums: UsageSums | UsageGroup, measure: Measure): number {
  if (measure === 'requests') return sums.requests
  if (measure === 'audio') return sums.audio_seconds / 60
  if (measure === 'cost') return sums.cost ?? 0
  return sums.input_tokens + sums.output_tokens
}

export type Bar = {
  readonly start: string
  readonly value: number
  readonly sums: UsageGroup | null
}

/** One bar for every hour or day, with 0 where nothing happened. */
export function barsOf(period: Period, groups: readonly UsageGroup[], measure: Measure): Bar[] {
  const byStart = new Map(groups.map((group) => [group.start, group]))
  return period.starts.map((start) => {
    const sums = byStart.get(start) ?? null
    return { start, sums, value: sums === null ? 0 : measured(sums, measure) }
  })
}

/** A round number at or above the highest value, for the scale. */
export function ceilingOf(values: readonly number[]): number {
  const highest = Math.max(...values, 0)
  if (highest === 0) return 1
  const power = 10 ** Math.floor(Math.log10(highest))
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= highest) ?? 10
  return step * power
}
