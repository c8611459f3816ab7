import type { MetricDefinition } from './metric-definition.ts'

/** One label set of a metric. */
export type SeriesSnapshot = {
  /** In the order of the names. */
  readonly labels: readonly string[]
  /** Of a histogram: the count of each bucket, the last one for infinity, then the sum. */
  readonly values: readonly number[]
}

/** A metric and its values at one moment; plain data, which processes exchange. */
export type MetricSnapshot = {
  readonly definition: MetricDefinition
  readonly series: readonly SeriesSnapshot[]
}

/** Beyond its limit of series, a metric adds further label sets to this one. */
export const overflowLabel = 'other'

/** The order of snapshots is that of their first occurrence. */
export function mergeSnapshots(
  parts: readonly (readonly MetricSnapshot[])[],
  seriesMax: number,
): readonly MetricSnapshot[] {
  const merged = new Map<string, Merging>()
  for (const snapshot of parts.flat()) {
    const { definition } = snapshot
    const known = merged.get(definition.name)
    const target = known ?? { definition, series: new Map() }
    if (known === undefined) merged.set(definition.name, target)
    for (const series of snapshot.series) addSeries(target, series, seriesMax)
  }
  return [...merged.values()].map(({ definition, series }) => ({
    definition,
    series: [...series.values()],
  }))
}

/** What outlives its process: totals never fall, while a gauge says nothing about a dead worker. */
export function totalsOf(snapshots: readonly MetricSnapshot[]): readonly MetricSnapshot[] {
  return snapshots.filter(({ definition }) => definition.type !== 'gauge')
}

type Merging = {
  readonly definition: MetricDefinition
  readonly series: Map<string, { readonly labels: readonly string[]; readonly values: number[] }>
}

function addSeries(target: Merging, added: SeriesSnapshot, seriesMax: number): void {
  const { definition, series } = target
  const key = JSON.stringify(added.labels)
  const known = series.get(key)
  const isOverflow = added.labels.every((label) => label === overflowLabel)
  if (known !== undefined) {
    addValues(definition, known.values, added.values)
  } else if (series.size < (definition.seriesMax ?? seriesMax) || isOverflow) {
    series.set(key, { labels: added.labels, values: [...added.values] })
  } else {
    addSeries(target, { ...added, labels: added.labels.map(() => overflowLabel) }, seriesMax)
  }
}

function addValues(definition: MetricDefinition, values: number[], added: readonly number[]): void {
  const combine = definition.type === 'gauge' ? combineGauges[definition.across] : sum
  for (const [at, value] of added.entries()) values[at] = combine(values[at] ?? 0, value)
}

const sum = (one: number, other: number) => one + other
const combineGauges = {
  sum,
  max: Math.max,
  min: Math.min,
  same: (_one: number, other: number) => other,
}
