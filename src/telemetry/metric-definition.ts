/**
 * What a metric is. Features declare theirs as data (`metrics.ts`), name them in their module, and
 * register instruments for them; docs/metrics.md is generated from the declarations.
 */
export type MetricDefinition = CounterDefinition | GaugeDefinition | HistogramDefinition

/** The values of a metric's labels come from bounded sets: never raw paths, user ids or process ids. */
type Labels = readonly string[]

type Named<L extends Labels> = {
  readonly name: string
  readonly help: string
  readonly labels?: L
  /** Lower or higher than the limit of the registry. */
  readonly seriesMax?: number
}

export type CounterDefinition<L extends Labels = Labels> = Named<L> & {
  readonly type: 'counter'
}

/**
 * How the gauges of several workers become one. `same`: every worker would read the same, as in the
 * database, so only the worker that responds to a scrape reads it.
 */
type Across = 'sum' | 'max' | 'min' | 'same'

export type GaugeDefinition<L extends Labels = Labels> = Named<L> & {
  readonly type: 'gauge'
  readonly across: Across
}

export type HistogramDefinition<L extends Labels = Labels> = Named<L> & {
  readonly type: 'histogram'
  /** The upper bounds of the buckets, rising, without infinity. */
  readonly bounds: readonly number[]
}

export type MetricSet = Readonly<Record<string, MetricDefinition>>

/** The metrics of one feature; the types of their labels are kept. */
export function defineMetrics<const T extends MetricSet>(metrics: T): T {
  return metrics
}
