import type { CrowdResult, CrowdSize } from './concurrent-streams.ts'
import type { DescriptorLimitResult } from './descriptor-limit.ts'
import type { Quantiles } from './histogram.ts'
import type { LoadReport } from './load-job.ts'
import { toMebibytes } from './process-tree.ts'
import { faultCount, formatFaults, isClean } from './report.ts'
import { formatTable } from './table.ts'

export function formatCrowd(size: CrowdSize, result: CrowdResult): string {
  const { report, memory, memoryWhenOpenBytes: open, livezMs, waited, descriptors } = result
  const { window, begun, latenessMs: late } = report
  const before = memory[0]?.bytes ?? 0
  const most = Math.max(open, ...memory.map(({ bytes }) => bytes))
  const each = (bytes: number) => `${((bytes - before) / size.streams / 1024).toFixed(1)} KiB`
  const cpuMs = window.cpuMs ?? 0
  const rows = [
    ['complete streams', `${report.requests} of ${size.streams}`],
    ['events, tokens', `${report.events}, ${report.tokens}`],
    ['faults', formatFaults(report.faults)],
    ['requests sent within', seconds(size.rampMs)],
    ['all first tokens within', seconds(begun.lastAfterMs)],
    ['memory before', `${toMebibytes(before)} MiB`],
    ['memory with all open', `${toMebibytes(open)} MiB, ${each(open)} per stream`],
    ['memory, peak', `${toMebibytes(most)} MiB, ${each(most)} per stream`],
    ['CPU with all open', `${((cpuMs / window.ms) * 100).toFixed(1)} % of a core`],
    ['… per event', `${((cpuMs / window.tokens) * 1000).toFixed(1)} µs`],
    ['CPU starvation while opening', percent(waited.opening)],
    ['… while all are open', percent(waited.open)],
    ['/livez while opening, ms', formatMs(livezMs.opening)],
    ['/livez while all are open, ms', formatMs(livezMs.open)],
    ['lag behind schedule, ms', formatMs(late)],
    ['descriptors per worker', descriptors.join(', ')],
  ]
  return formatTable(['what', `${size.streams} streams, 1 token/s each`], rows)
}

export function isComplete(size: CrowdSize, { report, livezFaults }: CrowdResult): boolean {
  return isClean(report) && report.requests === size.streams && faultCount(livezFaults) === 0
}

export function formatDescriptorLimit(result: DescriptorLimitResult): string {
  const { capacity: room, beyond, afterwards, isUnchanged: survived } = result
  const row = (what: string, of: (report: LoadReport) => number | string) => [
    what,
    ...[beyond, afterwards].map((report) => String(of(report))),
  ]
  const header = ['streams', `twice the capacity of ${room}`, 'half of it, afterwards']
  const rows = [
    row('opened and completed', ({ requests }) => requests),
    row('refused with 503', ({ refused }) => refused),
    row('failed in another way', ({ faults }) => faults.failed),
    row('lost, duplicated or changed tokens', ({ faults }) => faultCount(faults) - faults.failed),
    ['same processes as before', survived ? 'yes' : 'no', ''],
  ]
  return formatTable(header, rows)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} % of the time`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function formatMs({ p50, p99, p999, max }: Quantiles): string {
  const [middle, high, higher, highest] = [p50, p99, p999, max].map((ms) => ms.toFixed(1))
  return `p50 ${middle}, p99 ${high}, p99.9 ${higher}, max ${highest}`
}
