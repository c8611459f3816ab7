import { defineMetrics } from '#telemetry/metric-definition.ts'
import type { CounterCell, HistogramCell, MetricRegistry } from '#telemetry/metrics.ts'

export const httpMetrics = defineMetrics({
  requests: {
    type: 'counter',
    name: 'sluice_http_requests_total',
    help: 'Requests by the template of their route (`unmatched`: none) and the status of the response.',
    labels: ['method', 'route', 'status'],
  },
  duration: {
    type: 'histogram',
    name: 'sluice_http_request_duration_seconds',
    help: 'From the arrival of a request to its response; of a streamed one, to its first byte.',
    labels: ['method', 'route'],
    bounds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
})

const millisPerSecond = 1_000

/** Requests of one endpoint. Its series are made with its first request. */
export class RouteMetrics {
  readonly #metrics: HttpMetrics
  readonly #labels: readonly [method: string, route: string]
  readonly #byStatus = new Map<number, CounterCell>()
  #duration: HistogramCell | null = null

  constructor(metrics: HttpMetrics, method: string, route: string) {
    this.#metrics = metrics
    this.#labels = [method, route]
  }

  ended(status: number, receivedAtMs: number): void {
    this.#duration ??= this.#metrics.duration.at(...this.#labels)
    this.#duration.observe((performance.now() - receivedAtMs) / millisPerSecond)
    const count = this.#byStatus.get(status)
    if (count === undefined) this.#add(status)
    else count.total++
  }

  #add(status: number): void {
    const count = this.#metrics.requests.at(...this.#labels, String(status))
    this.#byStatus.set(status, count)
    count.total++
  }
}

export type HttpMetrics = ReturnType<typeof createHttpMetrics>

export function createHttpMetrics(registry: MetricRegistry) {
  return {
    requests: registry.counter(httpMetrics.requests),
    duration: registry.histogram(httpMetrics.duration),
  }
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** A request that no endpoint handled. Clients may invent methods. */
export function countUnmatched({ requests }: HttpMetrics, method: string, status: number): void {
  requests.add(1, knownMethods.has(method) ? method : 'other', 'unmatched', String(status))
}
