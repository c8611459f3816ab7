import { fairnessOf, fairnessOfWhole, quantile } from './fairness.ts'
import { formatTable } from './table.ts'
import { slotsPerUpstream, type TrafficReport, type UpstreamStats } from './traffic-job.ts'

export type PhaseResult = {
  readonly report: TrafficReport
  /** By upstream. */
  readonly stats: Readonly<Record<string, UpstreamStats>>
}

export type DeathResult = {
  readonly report: TrafficReport
  /** Calls in flight just before the death; each is cut, and retried. */
  readonly inFlight: number
  /** Retries between the death and the return, those of calls in flight included. */
  readonly retried: number
  /** Requests that the upstream got in the first part after its return. */
  readonly returnedRequests: number
}

export type TrafficResult = {
  readonly serviceMs: number
  readonly calm: PhaseResult
  readonly overload: PhaseResult
  readonly crowd: PhaseResult
  readonly death: DeathResult
}

type Row = {
  readonly metric: string
  readonly value: number
  readonly digits: number
  readonly target: string
  readonly isMet: boolean
}

export function formatTraffic(result: TrafficResult): string {
  const rows = rowsOf(result).map(({ metric, value, digits, target, isMet }) => [
    metric,
    value.toFixed(digits),
    target,
    isMet ? 'yes' : 'no',
  ])
  const phases = { ...result, death: { report: result.death.report } }
  const refusals = (['calm', 'overload', 'crowd', 'death'] as const).map((phase) => {
    const { callers, refused } = phases[phase].report
    const completed = callers.reduce((sum, caller) => sum + caller.completed, 0)
    const reasons = Object.entries(refused).map(([reason, count]) => `${count} × ${reason}`)
    return [phase, String(completed), reasons.join(', ') || 'none']
  })
  return [
    formatTable(['metric', 'measured', 'target', 'met'], rows),
    formatTable(['phase', 'completed calls', 'refused calls'], refusals),
  ].join('\n\n')
}

export function missedTargets(result: TrafficResult): string[] {
  return rowsOf(result)
    .filter(({ isMet }) => !isMet)
    .map(({ metric, value, digits, target }) => `${metric}: ${value.toFixed(digits)}, ${target}`)
}

function rowsOf({ serviceMs, calm, overload, crowd, death }: TrafficResult): Row[] {
  const others = overload.report.callers.slice(0, -1)
  const waits = others.flatMap(({ waitsMs }) => waitsMs)
  const waitOf = (fraction: number) => quantile(waits, fraction) / serviceMs
  const calmWaits = calm.report.callers.flatMap(({ waitsMs }) => waitsMs)
  const refusedOthers = others.reduce((sum, { sent, completed }) => sum + sent - completed, 0)
  const { steady = 0, mortal = 0, slow = 0 } = calm.report.byUpstream
  const calmCalls = steady + mortal + slow
  const crowdServed = crowd.report.callers.map(({ completed }) => completed)
  const { callers } = overload.report
  const inFlightMax = Math.max(
    ...[calm, overload, crowd].flatMap(({ stats }) =>
      Object.values(stats).map((upstream) => upstream.inFlightMax),
    ),
  )
  const failed = Object.values(death.report.refused).reduce((sum, count) => sum + count, 0)
  return [
    atMost(
      'calm: p99 wait, in service times: what the machine itself adds',
      quantile(calmWaits, 0.99) / serviceMs,
      1,
      2,
    ),
    atMost('overload: p99 wait of the others, in service times', waitOf(0.99), 2, 2),
    atMost('overload: p50 wait of the others, in service times', waitOf(0.5), 2, 2),
    atMost('overload: refused calls of the others', refusedOthers, 0, 0),
    ...Object.entries(overload.stats).map(([name, { busyMs, forMs }]) =>
      atLeast(`overload: slots in use at "${name}"`, busyMs / (forMs * slotsPerUpstream), 0.98, 3),
    ),
    atLeast(
      'overload: Jain index of calls, as parts of the max-min fair shares',
      fairnessOf(
        callers.map(({ sent }) => sent),
        callers.map(({ completed }) => completed),
      ),
      0.95,
      3,
    ),
    atLeast(
      'everyone waits: Jain index of calls, as part of the best for whole calls',
      fairnessOfWhole(crowdServed),
      0.95,
      3,
    ),
    atMost('most requests in flight at one upstream', inFlightMax, slotsPerUpstream, 0),
    atMost(
      'refusals without retry-after',
      [calm, overload, crowd].reduce((sum, { report }) => sum + report.withoutRetryAfter, 0),
      0,
      0,
    ),
    atMost('calm: share of the upstream that is 4 × slower', slow / calmCalls, 0.25, 3),
    atMost(
      'calm: difference of the two equal upstreams',
      Math.abs(steady - mortal) / (steady + mortal),
      0.05,
      3,
    ),
    atMost(
      `death: calls that noticed, beside the ${death.inFlight} in flight`,
      death.retried - death.inFlight,
      3,
      0,
    ),
    atMost('death: failed calls', failed, 0, 0),
    atLeast('death: requests to the upstream after its return', death.returnedRequests, 1, 0),
  ]
}

function atMost(metric: string, value: number, max: number, digits: number): Row {
  return { metric, value, digits, target: `≤ ${max}`, isMet: value <= max }
}

function atLeast(metric: string, value: number, min: number, digits: number): Row {
  return { metric, value, digits, target: `≥ ${min}`, isMet: value >= min }
}
