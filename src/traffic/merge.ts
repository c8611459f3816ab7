import type { UpstreamRecord } from '#models/upstream-record.ts'
import type { CollectedTraffic } from './messages.ts'
import { type CallReport, listedCallsMax, type QueueReport, type TrafficReport } from './report.ts'

export type Traffic = {
  readonly workers: { readonly reporting: number; readonly missing: number }
  readonly running: number
  readonly phases: TrafficReport['phases']
  readonly websockets: number
  /** The longest running first. */
  readonly calls: readonly (CallReport & { readonly worker: string })[]
  readonly queues: readonly QueueReport[]
  readonly upstreams: readonly UpstreamRecord[]
}

/** The traffic of all workers as one. */
export function mergeTraffic({ reports, missing }: CollectedTraffic): Traffic {
  const sum = (numberOf: (report: TrafficReport) => number) =>
    reports.reduce((total, report) => total + numberOf(report), 0)
  return {
    workers: { reporting: reports.length, missing },
    running: sum(({ running }) => running),
    phases: {
      waiting: sum(({ phases }) => phases.waiting),
      started: sum(({ phases }) => phases.started),
      streaming: sum(({ phases }) => phases.streaming),
      whole: sum(({ phases }) => phases.whole),
    },
    websockets: sum(({ websockets }) => websockets),
    calls: reports
      .flatMap(({ worker, calls }) => calls.map((call) => ({ ...call, worker })))
      .toSorted((one, other) => other.elapsedMs - one.elapsedMs)
      .slice(0, listedCallsMax),
    queues: mergeQueues(reports.flatMap(({ queues }) => queues)),
    upstreams: mergeUpstreams(reports.map(({ upstreams }) => upstreams)),
  }
}

function mergeQueues(queues: readonly QueueReport[]): QueueReport[] {
  const merged = new Map<string, QueueReport>()
  for (const queue of queues) {
    const key = JSON.stringify([queue.model, queue.priority])
    const known = merged.get(key)?.waiting ?? 0
    merged.set(key, { ...queue, waiting: known + queue.waiting })
  }
  return [...merged.values()].toSorted((one, other) => other.waiting - one.waiting)
}

/** Every worker has the same upstreams, except while a reload reaches them one by one. */
function mergeUpstreams(lists: readonly (readonly UpstreamRecord[])[]): UpstreamRecord[] {
  const byName = Map.groupBy(lists.flat(), ({ name }) => name)
  return [...byName.values()].flatMap((records) => {
    const [first, ...others] = records
    return first === undefined ? [] : [others.reduce(mergeUpstream, first)]
  })
}

function mergeUpstream(one: UpstreamRecord, other: UpstreamRecord): UpstreamRecord {
  const models = Map.groupBy([...one.models, ...other.models], ({ model }) => model)
  return {
    ...one,
    ...mergeHealth(one, other),
    in_flight: one.in_flight + other.in_flight,
    max_in_flight: addLimits(one.max_in_flight, other.max_in_flight),
    queued: one.queued + other.queued,
    requests: one.requests + other.requests,
    failures: one.failures + other.failures,
    last_failure: laterFailure(one.last_failure, other.last_failure),
    drained_at: one.drained_at ?? other.drained_at,
    drained_by: one.drained_by ?? other.drained_by,
    models: [...models.values()].flatMap((records) => {
      const [first, ...others] = records
      return first === undefined ? [] : [others.reduce(mergeModel, first)]
    }),
  }
}

type ModelRecord = UpstreamRecord['models'][number]

function mergeModel(one: ModelRecord, other: ModelRecord): ModelRecord {
  return {
    ...one,
    ...mergeHealth(one, other),
    first_event_ms: highest(one.first_event_ms, other.first_event_ms),
    response_ms: highest(one.response_ms, other.response_ms),
  }
}

type HealthRecord = Pick<
  UpstreamRecord,
  'state' | 'consecutive_failures' | 'ejections' | 'ejected_until'
>

/** The worst first: one worker that cannot reach an upstream is what an operator must see. */
const severity: readonly HealthRecord['state'][] = [
  'draining',
  'ejected',
  'half_open',
  'suspect',
  'recovering',
  'available',
]

function mergeHealth(one: HealthRecord, other: HealthRecord): HealthRecord {
  return {
    state: severity.find((state) => state === one.state || state === other.state) ?? one.state,
    consecutive_failures: Math.max(one.consecutive_failures, other.consecutive_failures),
    ejections: one.ejections + other.ejections,
    ejected_until: later(one.ejected_until, other.ejected_until),
  }
}

function highest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other)
}

/** Null: no limit. */
function addLimits(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

/** Of ISO instants; their order is that of their texts. */
function later(one: string | null, other: string | null): string | null {
  return one === null || other === null ? (one ?? other) : one > other ? one : other
}

function laterFailure(
  one: UpstreamRecord['last_failure'],
  other: UpstreamRecord['last_failure'],
): UpstreamRecord['last_failure'] {
  if (one === null || other === null) return one ?? other
  return one.at > other.at ? one : other
}
