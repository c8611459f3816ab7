import { cpuUsPer } from './cpu-split.ts'
import type { LoadReport } from './load-job.ts'
import { ratios, valuesByRound } from './rounds.ts'
import { formatSpread as formatFigures, formatTable } from './table.ts'

export const measureNames = ['whole responses', 'events unpaced'] as const
export type MeasureName = (typeof measureNames)[number]

export type WorkersResult = {
  readonly round: number
  readonly workers: number
  readonly measure: MeasureName
  readonly report: LoadReport
}

/** Connections per worker. */
export type SpreadResult = {
  readonly round: number
  readonly workers: number
  readonly connections: readonly number[]
  readonly report: LoadReport
}

type Metric = { readonly name: string; readonly of: (report: LoadReport) => number }

const values: Readonly<Record<MeasureName, readonly Metric[]>> = {
  'whole responses': [
    { name: 'responses/s', of: ({ window }) => (window.requests / window.ms) * 1000 },
    { name: 'CPU each, µs', of: (report) => cpuUsPer('requests', report) },
    { name: 'cores', of: cores },
  ],
  'events unpaced': [
    { name: 'events/s', of: ({ window }) => (window.tokens / window.ms) * 1000 },
    { name: 'CPU each, µs', of: (report) => cpuUsPer('tokens', report) },
    { name: 'cores', of: cores },
  ],
}

/** One row per metric; ratios within rounds. */
export function formatThroughput(results: readonly WorkersResult[]): string {
  const [one = 1, several = 1] = [...new Set(results.map(({ workers }) => workers))].toSorted(
    (left, right) => left - right,
  )
  const rows = measureNames.flatMap((measure) =>
    values[measure].map(({ name, of }) => {
      const ofWorkers = (workers: number) =>
        valuesByRound(
          results.filter((result) => result.measure === measure && result.workers === workers),
          ({ report }) => of(report),
        )
      const [left, right] = [ofWorkers(one), ofWorkers(several)]
      const digits = name.endsWith('/s') ? 0 : 2
      return [
        `${measure}, ${name}`,
        formatFigures([...left.values()], digits),
        formatFigures([...right.values()], digits),
        formatFigures(ratios(right, left), 2),
      ]
    }),
  )
  return formatTable(['what', `${one} worker`, `${several} workers`, 'ratio'], rows)
}

export function formatSpread(results: readonly SpreadResult[]): string {
  const rows = results.map(({ round, workers, connections }) => {
    const total = connections.reduce((sum, count) => sum + count, 0)
    const most = (Math.max(...connections) / (total / workers) - 1) * 100
    return [`${round + 1}`, connections.join(' + '), `${most.toFixed(1)} % above average`]
  })
  return formatTable(['round', 'connections per worker', 'largest share'], rows)
}

/** Average number of cores used by the gateway. */
function cores({ window }: LoadReport): number {
  return (window.cpuMs ?? Number.NaN) / window.ms
}
