import { Histogram, type Quantiles } from './histogram.ts'
import { toMebibytes } from './process-tree.ts'
import { type Stage, type StormReport, stages } from './storm-job.ts'
import { formatTable } from './table.ts'

export type StormResult = {
  readonly report: StormReport
  /** End of each request at the upstream in wall clock time, by request id. */
  readonly ends: ReadonlyMap<number, number>
  readonly lastsMs: number
  /** CPU time of the gateway's process tree. */
  readonly cpuMs: number
  /** Descriptors of its workers. */
  readonly descriptorsMax: number
  readonly memoryMax: number
}

/** Resources while idle. */
export type ResourceUse = {
  readonly generations: number
  readonly upstreamRequests: number
  /** Idle upstream connections kept by the gateway. */
  readonly upstreamConnections: number
  /** Descriptors of the gateway's workers. */
  readonly descriptors: number
  readonly memoryBytes: number
}

export type UpstreamEndings = {
  /** Requests that were open at the upstream when their client disconnected. */
  readonly byStage: Readonly<Record<Stage, Quantiles>>
  readonly tooLate: number
  /** Incomplete requests that reached the upstream nevertheless. */
  readonly sent: number
}

/** Time from the client's disconnect to the end of the upstream request. */
export function endsAfterLeaving(
  { report, ends }: StormResult,
  limitMs = Number.POSITIVE_INFINITY,
): UpstreamEndings {
  const times = Object.fromEntries(stages.map((stage) => [stage, new Histogram()]))
  let tooLate = 0
  let sent = 0
  for (const { id, stage, atMs } of report.left) {
    const endedAtMs = ends.get(id)
    if (endedAtMs === undefined) continue
    if (stage === 'sending the request') sent++
    const tookMs = endedAtMs - atMs
    // The upstream may have finished before its client disconnected.
    if (tookMs < 0) continue
    times[stage]?.record(tookMs)
    if (tookMs > limitMs) tooLate++
  }
  const quantiles = (stage: Stage) => (times[stage] ?? new Histogram()).quantiles()
  return {
    byStage: {
      'sending the request': quantiles('sending the request'),
      'waiting for the response': quantiles('waiting for the response'),
      'reading the response': quantiles('reading the response'),
    },
    tooLate,
    sent,
  }
}

export function formatStorm(
  result: StormResult,
  about: { before: ResourceUse; after: ResourceUse; clients: number; limitMs: number },
): string {
  return `${formatDisconnects(result, about.limitMs)}\n\n${formatRest(result, about)}`
}

function formatDisconnects(result: StormResult, limitMs: number): string {
  const { byStage } = endsAfterLeaving(result)
  const rows = stages.map((stage) => {
    const left = result.report.left.filter((leaving) => leaving.stage === stage)
    const { count, p50, p99, p999, max } = byStage[stage]
    const times = [p50, p99, p999, max].map((ms) => (count === 0 ? '-' : ms.toFixed(1)))
    return [stage, `${left.length}`, `${count}`, ...times]
  })
  const header = [
    'client disconnected while',
    'clients',
    'open at upstream',
    ...['p50', 'p99', 'p99.9'].map((name) => `closed after, ${name}, ms`),
    `max (limit ${limitMs} ms)`,
  ]
  return formatTable(header, rows)
}

function formatRest(
  { report, cpuMs, lastsMs, ...most }: StormResult,
  { before, after, clients }: { before: ResourceUse; after: ResourceUse; clients: number },
): string {
  const requests = report.left.length + report.stayed
  const { p50, p99 } = report.stayedMs
  const memory = (bytes: number) => `${toMebibytes(bytes)} MiB`
  const row = (name: string, value: (print: ResourceUse) => string, during = '') => [
    name,
    value(before),
    during,
    value(after),
  ]
  const rows = [
    ['requests', '', `${requests}, ${Math.round((requests / lastsMs) * 1000)} a second`, ''],
    ['… of connected clients, complete', '', `${report.stayed}`, ''],
    ['… their added time, ms', '', `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}`, ''],
    ['events checked', '', `${report.events}`, ''],
    ['gateway CPU per request', '', `${((cpuMs / requests) * 1000).toFixed(0)} µs`, ''],
    row('generations', ({ generations }) => `${generations}`),
    row('requests open at upstream', (print) => `${print.upstreamRequests}`),
    row('idle upstream connections', (print) => `${print.upstreamConnections}`),
    row('descriptors', (print) => `${print.descriptors}`, `max ${most.descriptorsMax}`),
    row('memory', (print) => memory(print.memoryBytes), `max ${memory(most.memoryMax)}`),
  ]
  return formatTable(['what', 'before', `${clients} clients`, 'after'], rows)
}
