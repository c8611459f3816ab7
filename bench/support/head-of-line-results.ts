import type { Quantiles } from './histogram.ts'
import type { LoadReport } from './load-job.ts'
import { differences, valuesByRound } from './rounds.ts'
import type { Faults } from './stream-check.ts'
import { formatSpread, formatTable } from './table.ts'

/** Long prompt sent every second beside the streams. */
export type PromptSize = 'none' | '500 KB' | '5 MB'

export type LineResult = {
  readonly round: number
  readonly size: PromptSize
  readonly report: LoadReport
  /** /livez latency, which shows event loop delay. */
  readonly livezMs: Quantiles
  /** Latency of the long prompts; null if there were none. */
  readonly promptMs: Quantiles | null
  /** Time in which gateway threads waited for a core; null if not reported. */
  readonly waitedMs: number | null
  readonly faults: readonly Faults[]
}

type MetricOf = (result: LineResult) => number

/** Each metric without long prompts and with each size, and the difference. */
export function formatLines(results: readonly LineResult[], sizes: readonly PromptSize[]): string {
  const ofSize = (size: PromptSize) => results.filter((result) => result.size === size)
  const alone = ofSize('none')
  const row = (name: string, metric: MetricOf, digits = 1) => [
    name,
    ...sizes.map((size) => formatSpread(ofSize(size).map(metric), digits)),
  ]
  const added = (name: string, metric: MetricOf) => [
    name,
    ...sizes.map((size) => {
      const more = differences(valuesByRound(ofSize(size), metric), valuesByRound(alone, metric))
      return size === 'none' ? '' : formatSpread(more, 1)
    }),
  ]
  const gapP99: MetricOf = ({ report }) => report.gapMs.p99
  const rows = [
    row('gap between two tokens, p50, ms', ({ report }) => report.gapMs.p50),
    row('… p99', gapP99),
    added('… added', gapP99),
    row('… p99.9', ({ report }) => report.gapMs.p999),
    row('… max', ({ report }) => report.gapMs.max),
    row('lag behind schedule, p99, ms', ({ report }) => report.latenessMs.p99),
    row('/livez, p50, ms', ({ livezMs }) => livezMs.p50),
    row('… p99', ({ livezMs }) => livezMs.p99),
    row('… max', ({ livezMs }) => livezMs.max),
    row('long prompt latency, p50, ms', ({ promptMs }) => promptMs?.p50 ?? Number.NaN),
    row('… max', ({ promptMs }) => promptMs?.max ?? Number.NaN),
    row('gateway CPU, % of a core', cpuShare, 0),
    row('… waiting for a core, %', waitShare, 0),
  ]
  const titles = sizes.map((size) => (size === 'none' ? 'no long prompt' : `${size} a second`))
  return formatTable(['beside the streams', ...titles], rows)
}

function cpuShare({ report: { window } }: LineResult): number {
  return ((window.cpuMs ?? Number.NaN) / window.ms) * 100
}

function waitShare({ waitedMs, report }: LineResult): number {
  return waitedMs === null ? Number.NaN : (waitedMs / report.window.ms) * 100
}
