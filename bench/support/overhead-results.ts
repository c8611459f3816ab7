import type { LoadReport } from './load-job.ts'
import type { Protocol } from './mock-frames.ts'
import { formatSpread, formatTable, median } from './table.ts'

export type TargetName = 'direct' | 'nginx' | 'Sluice'

export type MeasureName =
  | 'first token, 1 client'
  | 'first token, 8 clients'
  | 'whole answer, 1 client'
  | 'whole answer, 8 clients'
  | '400 streams in step'
  | '400 streams spread'

/** One job on one target in one round. */
export type Result = {
  readonly round: number
  readonly measure: MeasureName
  readonly target: TargetName
  readonly upstreamApi: Protocol
  readonly report: LoadReport
}

/** Picks one figure out of a report. */
type Figure = (report: LoadReport) => number

type Row = {
  readonly measure: MeasureName
  readonly upstreamApi: Protocol
  readonly title: string
}

/** The budgets of the design; the ratios are to nginx in the same round. */
const timeBudgets: Partial<Record<MeasureName, string>> = {
  'first token, 1 client': 'p50 ≤ 0.5, p99 ≤ 2',
}

function cpuBudget(measure: MeasureName, upstreamApi: Protocol): string {
  if (measure === 'whole answer, 8 clients') return '≤ 100 µs'
  if (measure !== '400 streams in step') return ''
  return upstreamApi === 'chat' ? '≤ 1.8 × nginx' : '≤ 1.2 × nginx'
}

const timed: readonly MeasureName[] = [
  'first token, 1 client',
  'first token, 8 clients',
  'whole answer, 1 client',
  'whole answer, 8 clients',
]
const streamed: readonly MeasureName[] = ['400 streams in step', '400 streams spread']

export function formatResults(results: readonly Result[]): string {
  const cpuMeasures: readonly MeasureName[] = ['whole answer, 8 clients', ...streamed]
  return [timeTable(results, timed), cpuTable(results, cpuMeasures), lateTable(results, streamed)]
    .filter((table) => table !== '')
    .join('\n\n')
}

function timeTable(results: readonly Result[], measures: readonly MeasureName[]): string {
  const header = ['added time, ms', 'direct', 'nginx adds', 'Sluice adds', 'budget']
  const rows = rowsFor(results, measures).flatMap((row) =>
    (['p50', 'p99'] as const).map((quantile) => {
      const figure: Figure = (report) => report.firstTokenMs[quantile]
      const of = (target: TargetName) => byRound(results, { row, target, figure })
      const direct = of('direct')
      return [
        `${row.title}, ${quantile}`,
        formatSpread([...direct.values()], 2),
        formatSpread(pairs(of('nginx'), direct, minus), 2),
        formatSpread(pairs(of('Sluice'), direct, minus), 2),
        quantile === 'p50' ? (timeBudgets[row.measure] ?? '') : '',
      ]
    }),
  )
  return rows.length === 0 ? '' : formatTable(header, rows)
}

function cpuTable(results: readonly Result[], measures: readonly MeasureName[]): string {
  const header = ['CPU, µs', 'nginx', 'Sluice', 'Sluice / nginx', 'budget']
  const rows = rowsFor(results, measures).map((row) => {
    const figure = row.measure.startsWith('400') ? cpuUsPerToken : cpuUsPerRequest
    const nginx = byRound(results, { row, target: 'nginx', figure })
    const sluice = byRound(results, { row, target: 'Sluice', figure })
    return [
      `${row.title}, per ${row.measure.startsWith('400') ? 'event' : 'request'}`,
      formatSpread([...nginx.values()], 1),
      formatSpread([...sluice.values()], 1),
      formatSpread(pairs(sluice, nginx, over), 2),
      cpuBudget(row.measure, row.upstreamApi),
    ]
  })
  return formatTable(header, rows)
}

function lateTable(results: readonly Result[], measures: readonly MeasureName[]): string {
  const targets = ['direct', 'nginx', 'Sluice'] as const
  const header = ['behind the schedule, ms (p50 / p99 / max)', ...targets]
  const rows = rowsFor(results, measures).map((row) => [
    row.title,
    ...targets.map((target) => {
      const figures = (['p50', 'p99', 'max'] as const).map((quantile) => {
        const figure: Figure = (report) => report.latenessMs[quantile]
        const values = [...byRound(results, { row, target, figure }).values()]
        return values.length === 0 ? '-' : median(values).toFixed(1)
      })
      return figures.join(' / ')
    }),
  ])
  return formatTable(header, rows)
}

function rowsFor(results: readonly Result[], measures: readonly MeasureName[]): Row[] {
  return (['chat', 'responses'] as const).flatMap((upstreamApi) =>
    measures
      .filter((name) => results.some((r) => r.measure === name && r.upstreamApi === upstreamApi))
      .map((measure) => ({
        measure,
        upstreamApi,
        title: `${measure}, ${upstreamApi} → Responses`,
      })),
  )
}

type Pick = { readonly row: Row; readonly target: TargetName; readonly figure: Figure }

function byRound(results: readonly Result[], pick: Pick): Map<number, number> {
  const { row, target, figure } = pick
  const picked = results.filter(
    (result) =>
      result.measure === row.measure &&
      result.upstreamApi === row.upstreamApi &&
      result.target === target,
  )
  return new Map(picked.map((result) => [result.round, figure(result.report)]))
}

/** Two targets compared round by round, so that a slow minute of the machine touches both. */
function pairs(
  left: ReadonlyMap<number, number>,
  right: ReadonlyMap<number, number>,
  how: (left: number, right: number) => number,
): number[] {
  return [...left].flatMap(([round, value]) => {
    const other = right.get(round)
    return other === undefined ? [] : [how(value, other)]
  })
}

const minus = (left: number, right: number) => left - right
const over = (left: number, right: number) => left / right

function cpuUsPerToken({ window }: LoadReport): number {
  return ((window.cpuMs ?? Number.NaN) * 1000) / window.tokens
}

function cpuUsPerRequest({ window }: LoadReport): number {
  return ((window.cpuMs ?? Number.NaN) * 1000) / window.requests
}
