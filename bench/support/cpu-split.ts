import type { ThreadGroup } from './cpu-use.ts'
import type { LoadReport } from './load-job.ts'
import { median } from './table.ts'

/** Columns of the CPU split. */
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

type Counted = 'requests' | 'tokens'

/** CPU time in microseconds per unit; NaN if not measured. */
export function cpuUsPer(counted: Counted, { window }: LoadReport): number {
  return ((window.cpuMs ?? Number.NaN) * 1000) / window[counted]
}

/** CPU by thread; medians of the rounds. */
export function splitCells(reports: readonly LoadReport[], counted: Counted): string[] {
  return columns.map((groups) => {
    const values = reports.map((report) => {
      const spent = report.window.cpu?.groupMs
      const ms = groups.reduce((sum, group) => sum + (spent?.[group] ?? Number.NaN), 0)
      return (ms * 1000) / report.window[counted]
    })
    const known = values.filter((value) => Number.isFinite(value))
    return known.length === 0 ? '-' : median(known).toFixed(1)
  })
}
