import type { TrafficReport } from './report.ts'

/** From a worker to the supervisor. */
export type TrafficMessage =
  /** Asks for the reports of all workers. */
  | { readonly type: 'traffic-request'; readonly id: number }
  /** The reply to `collect-traffic`. */
  | { readonly type: 'traffic-report'; readonly report: TrafficReport }

/** From the supervisor to a worker. */
export type TrafficOrder =
  | { readonly type: 'collect-traffic' }
  | {
      readonly type: 'traffic-reports'
      readonly id: number
      readonly reports: readonly TrafficReport[]
      /** Workers that did not report in time. */
      readonly missing: number
    }

export type CollectedTraffic = {
  readonly reports: readonly TrafficReport[]
  readonly missing: number
}
