import { orAfter } from '#lib/time-limit.ts'
import type {
  CounterDefinition,
  GaugeDefinition,
  HistogramDefinition,
  MetricDefinition,
} from './metric-definition.ts'
import { createSeriesTree, type LabelValues } from './metric-series.ts'
import type { MetricSnapshot, SeriesSnapshot } from './metric-snapshot.ts'
import { registryMetrics } from './registry-metrics.ts'

/**
 * The metrics of one process. A library of this kind takes 17 MB of a worker's memory and a tenth of a
 * second of its start; this one takes neither.
 */
export type MetricRegistry = {
  counter<const L extends LabelValues = readonly []>(definition: CounterDefinition<L>): Counter<L>
  histogram<const L extends LabelValues = readonly []>(
    definition: HistogramDefinition<L>,
  ): Histogram<L>
  /** `read` is called for each snapshot; if it throws, the gauge is omitted. */
  gauge(definition: GaugeDefinition, read: Read): void
  /** A counter that is kept elsewhere. Its series never fall or vanish while the process runs. */
  observeCounter(definition: CounterDefinition, read: Read): void
  /** A gauge that every worker would read the same, read for scrapes that this process responds to. */
  sharedGauge(definition: GaugeDefinition, read: () => Promise<number | readonly Sample[]>): void
  /** Without shared gauges. */
  snapshot(): readonly MetricSnapshot[]
  /** With shared gauges, except those that take longer than `sharedGaugeMsMax`. */
  snapshotWithShared(): Promise<readonly MetricSnapshot[]>
}

export type Sample = readonly [value: number, ...labels: LabelValues]
type Read = () => number | readonly Sample[]
type ValuesOf<L extends LabelValues> = { readonly [At in keyof L]: string }

export type Counter<L extends LabelValues = LabelValues> = {
  add(by: number, ...labels: ValuesOf<L>): void
  /** The series of a label set, for callers that keep it. */
  at(...labels: ValuesOf<L>): CounterCell
}
type Histogram<L extends LabelValues = LabelValues> = {
  observe(value: number, ...labels: ValuesOf<L>): void
  at(...labels: ValuesOf<L>): HistogramCell
}

export type CounterCell = { total: number }

/** One series of a histogram; requests update it, so it is a class. */
export class HistogramCell {
  readonly #bounds: readonly number[]
  readonly #counts: Float64Array
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#sum += value
  }

  values(): number[] {
    return [...this.#counts, this.#sum]
  }
}

/** How long a scrape waits for one shared gauge, such as a query to a database that hangs. */
export const sharedGaugeMsMax = 1_500

type Metric = { readonly definition: MetricDefinition; readonly read: () => SeriesSnapshot[] }
type SharedMetric = Pick<Metric, 'definition'> & {
  readonly read: () => Promise<SeriesSnapshot[]>
}

/** `seriesMax`: label sets of one metric; further ones are added up in an overflow series. */
export function createMetricRegistry({ seriesMax }: { seriesMax: number }): MetricRegistry {
  const metrics: Metric[] = []
  const shared: SharedMetric[] = []

  const names = new Set<string>()
  const declare = ({ name }: MetricDefinition) => {
    if (names.has(name)) throw new Error(`two metrics have the name ${name}`)
    names.add(name)
  }
  const add = (metric: Metric) => {
    declare(metric.definition)
    metrics.push(metric)
  }

  /** Series without labels exist from the start, so that their rates can be watched. */
  const treeOf = <T>(definition: MetricDefinition, create: () => T) => {
    const { name, labels = [] } = definition
    const tree = createSeriesTree({
      seriesMax: definition.seriesMax ?? seriesMax,
      labelCount: labels.length,
      create,
      onOverflow: () => overflows.add(1, name),
    })
    if (labels.length === 0) tree.of(labels)
    return tree
  }

  function counter<const L extends LabelValues = readonly []>(definition: CounterDefinition<L>) {
    const series = treeOf<CounterCell>(definition, () => ({ total: 0 }))
    const read = () =>
      series.list().map(([labels, { total }]): SeriesSnapshot => ({ labels, values: [total] }))
    add({ definition, read })
    return {
      add(by: number, ...labels: ValuesOf<L>) {
        series.of(labels).total += by
      },
      at: (...labels: ValuesOf<L>) => series.of(labels),
    }
  }

  const overflows = counter(registryMetrics.overflows)

  return {
    counter,

    histogram<const L extends LabelValues = readonly []>(definition: HistogramDefinition<L>) {
      const series = treeOf(definition, () => new HistogramCell(definition.bounds))
      const read = () =>
        series.list().map(([labels, cell]): SeriesSnapshot => ({ labels, values: cell.values() }))
      add({ definition, read })
      return {
        observe(value, ...labels) {
          series.of(labels).observe(value)
        },
        at: (...labels) => series.of(labels),
      }
    },

    gauge(definition, read) {
      add({ definition, read: () => seriesOf(read()) })
    },

    observeCounter(definition, read) {
      const kept = treeOf(definition, () => ({ base: 0, latest: 0 }))
      add({
        definition,
        read() {
          for (const { labels, values } of seriesOf(read())) {
            const cell = kept.of(labels)
            const [latest = 0] = values
            // The object that counted was replaced.
            if (latest < cell.latest) cell.base += cell.latest
            cell.latest = latest
          }
          return kept.list().map(([labels, { base, latest }]) => {
            return { labels, values: [base + latest] }
          })
        },
      })
    },

    sharedGauge(definition, read) {
      declare(definition)
      shared.push({ definition, read: async () => seriesOf(await read()) })
    },

    snapshot: () => metrics.flatMap(snapshotOf),

    async snapshotWithShared() {
      const late = Promise.all(
        shared.map(async ({ definition, read }): Promise<MetricSnapshot[]> => {
          const series = await orAfter(read(), sharedGaugeMsMax, null).catch(() => null)
          return series === null ? [] : [{ definition, series }]
        }),
      )
      const found = await late
      return [...metrics.flatMap(snapshotOf), ...found.flat()]
    },
  }
}

function seriesOf(found: number | readonly Sample[]): SeriesSnapshot[] {
  const samples: readonly Sample[] = typeof found === 'number' ? [[found]] : found
  return samples.map(([value, ...labels]) => ({ labels, values: [value] }))
}

/** One metric that cannot be read affects no other. */
function snapshotOf({ definition, read }: Metric): MetricSnapshot[] {
  try {
    return [{ definition, series: read() }]
  } catch {
    return []
  }
}
