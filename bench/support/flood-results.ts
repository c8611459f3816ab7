import { type CallerName, callers, type FloodReport } from './flood-job.ts'
import type { Quantiles } from './histogram.ts'
import { formatSpread, formatTable, median } from './table.ts'

/** How valid probes are authenticated: from memory, or from the database. */
const probes = ['known token', 'known key', 'key not seen before'] as const

type ProbeName = (typeof probes)[number]

export type RateResult = {
  readonly round: number
  readonly caller: CallerName
  readonly report: FloodReport
}

export type FloodProbeResult = {
  readonly round: number
  /** Kind of flood; null: none. */
  readonly flood: CallerName | null
  /** Latency of the flood itself. */
  readonly report: FloodReport | null
  readonly responseMs: Readonly<Record<ProbeName, Quantiles>>
}

const microsPerMilli = 1_000

/** Cost and rate of each kind of request. */
export function formatRates(results: readonly RateResult[]): string {
  const rows = callers.map((caller) => {
    const reports = results.filter((result) => result.caller === caller).map((one) => one.report)
    const spread = (value: (report: FloodReport) => number, digits: number) =>
      formatSpread(reports.map(value), digits)
    const unavailable = reports.reduce((sum, report) => sum + report.unavailable, 0)
    return [
      caller,
      spread(perSecond, 0),
      spread(cpuPerResponse, 1),
      spread((report) => 1e6 / cpuPerResponse(report), 0),
      spread(({ cpu, responses }) => (cpu.groupMs.main / responses) * microsPerMilli, 1),
      spread(({ responseMs }) => responseMs.p99, 1),
      `${unavailable}`,
    ]
  })
  const header = [
    'request',
    'responses/s',
    'CPU each, µs',
    'responses/s per core',
    '… main thread, µs',
    'latency p99, ms',
    'with 503',
  ]
  return formatTable(header, rows)
}

function perSecond({ responses, windowMs }: FloodReport): number {
  return (responses / windowMs) * 1000
}

function cpuPerResponse({ cpu, responses }: FloodReport): number {
  return (cpu.totalMs / responses) * microsPerMilli
}

/** Latency of valid requests, with and without a flood. */
export function formatFloodProbes(results: readonly FloodProbeResult[]): string {
  const floods = [...new Set(results.map(({ flood }) => flood))].sort(unfloodedFirst)
  const rows = floods.map((flood) => {
    const own = results.filter((result) => result.flood === flood)
    const reports = own.flatMap(({ report }) => report ?? [])
    return [
      flood ?? 'none',
      formatSpread(reports.map(perSecond), 0),
      ...probes.map((guest) => formatWaits(own.map(({ responseMs }) => responseMs[guest]))),
      formatWaits(reports.map(({ responseMs }) => responseMs)),
    ]
  })
  const header = [
    'flood',
    'per second',
    ...probes.map((guest) => `${guest}, ms`),
    'flood itself, ms',
  ]
  return formatTable(header, rows)
}

function unfloodedFirst(one: CallerName | null, other: CallerName | null): number {
  const place = (flood: CallerName | null) => (flood === null ? -1 : callers.indexOf(flood))
  return place(one) - place(other)
}

function formatWaits(waits: readonly Quantiles[]): string {
  if (waits.length === 0) return '-'
  const p50 = median(waits.map((wait) => wait.p50)).toFixed(1)
  const p99 = formatSpread(
    waits.map((wait) => wait.p99),
    1,
  )
  return `p50 ${p50}, p99 ${p99}`
}
