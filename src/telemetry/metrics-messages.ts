import type { MetricSnapshot } from './metric-snapshot.ts'
import type { MetricsFormat } from './metrics-text.ts'

/** From a worker to the supervisor. */
export type MetricsReport =
  /** A reply to `collect-metrics`, or the last totals of a worker that ends. */
  | { readonly type: 'metrics'; readonly metrics: readonly MetricSnapshot[] }
  /** The worker responds to a scrape and needs the metrics of all workers. */
  | {
      readonly type: 'scrape-metrics'
      readonly id: number
      readonly format: MetricsFormat
      /** Its own, with shared gauges. */
      readonly metrics: readonly MetricSnapshot[]
    }

/** `shared`: also gauges that every worker would read the same; `totals`: what must survive the worker. */
export type CollectScope = 'all' | 'shared' | 'totals'

/** From the supervisor to a worker. */
export type MetricsRequest =
  | { readonly type: 'collect-metrics'; readonly scope: CollectScope }
  | { readonly type: 'scraped-metrics'; readonly id: number; readonly text: string }
