import type { ThreadGroup } from './cpu-use.ts'
import type { LoadReport } from './load-job.ts'
import { median } from './table.ts'

/** What each column of a split says. */
export const splitHeader: readonly string[] = [
  'main thread',
  'compilers (JIT)',
  'collector (GC)',
  'workers, database',
  'HTTP client',
  'other threads',
]

const columns: readonly (readonly ThreadGroup[])[] = [
  ['main'],
  ['JIT'],
  ['GC'],
  ['worker'],
  ['HTTP'],
  ['other', 'ended'],
]

/** Where the CPU time goes, in microseconds for one of what `count` counts; medians of the rounds. */
export function splitCells(
  reports: readonly LoadReport[],
  count: (report: LoadReport) => number,
): string[] {
  return columns.map((groups) => {
    const values = reports.map((report) => {
      const spent = report.window.cpu?.groupMs
      const ms = groups.reduce((sum, group) => sum + (spent?.[group] ?? Number.NaN), 0)
      return (ms * 1000) / count(report)
    })
    const counted = values.filter((value) => Number.isFinite(value))
    return counted.length === 0 ? '-' : median(counted).toFixed(1)
  })
}
