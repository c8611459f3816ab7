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

/** From the supervisor to a worker. */
export type MetricsRequest =
  /** `scope`: everything for a scrape, or only what must survive the worker. */
  | { readonly type: 'collect-metrics'; readonly scope: 'all' | 'totals' }
  | { readonly type: 'scraped-metrics'; readonly id: number; readonly text: string }
