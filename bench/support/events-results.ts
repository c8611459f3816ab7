import { cpuUsPer, splitCells, splitHeader } from './cpu-split.ts'
import { belongsToPair, formatPair, type Pair, storedTarget, type TargetResult } from './pairs.ts'
import { peerNote } from './peers.ts'
import { ratios, valuesByRound } from './rounds.ts'
import { formatSpread, formatTable, median } from './table.ts'

/** A number of streams with a pace; pace 0: unpaced. */
export type StreamLoad = { readonly streams: number; readonly tokensPerSecond: number }

/** One load on one target in one round. */
export type EventsResult = TargetResult & {
  readonly load: StreamLoad
  /** Memory of the process tree while the streams are open, minus that before. */
  readonly memoryGrowthBytes: number
}

/** The load of the budgets. */
const budgetStreams = 400
/** Minimum streams for a meaningful memory metric. */
const streamsForMemory = 100

export function formatEvents(
  results: readonly EventsResult[],
  pairs: readonly Pair[],
  peerNames: readonly string[],
): string {
  const tables = pairs.flatMap((pair) => [
    cpuTable(results, pair, pair.upstream === 'chat' ? peerNames : []),
    paceTable(results, pair),
    ...storedTable(results, pair),
  ])
  const notes = peerNames.length === 0 ? [] : [peerNote]
  return [...tables, splitTable(results, pairs), ...notes].join('\n\n')
}

export function formatLoad({ streams, tokensPerSecond }: StreamLoad): string {
  const pace = tokensPerSecond === 0 ? 'unpaced' : `at ${tokensPerSecond}/s`
  return `${streams === 1 ? '1 stream' : `${streams} streams`} ${pace}`
}

function cpuTable(results: readonly EventsResult[], pair: Pair, peers: readonly string[]): string {
  const header = [
    `${formatPair(pair)}: CPU per event, µs`,
    ...['nginx', 'floor', 'Sluice', 'floor / nginx', 'Sluice / nginx'],
    ...peers.map((name) => `${name} *`),
    'budget',
  ]
  const rows = loadsIn(results).map((load) => {
    const of = (target: string) => cpuByRound(results, { pair, load, target })
    const [nginx, floor, sluice] = [of('nginx'), of('floor'), of('Sluice')]
    return [
      formatLoad(load),
      ...[nginx, floor, sluice].map((values) => formatSpread([...values.values()], 2)),
      ...[floor, sluice].map((values) => formatSpread(ratios(values, nginx), 2)),
      ...peers.map((name) => formatSpread([...of(name).values()], 2)),
      budgetOf(pair, load),
    ]
  })
  return formatTable(header, rows)
}

function cpuByRound(results: readonly EventsResult[], wanted: Wanted) {
  return valuesByRound(pick(results, wanted), ({ report }) => cpuUsPer('tokens', report))
}

/** Streams whose responses are stored, beside the same ones that are not; none without such a run. */
function storedTable(results: readonly EventsResult[], pair: Pair): string[] {
  const rows = loadsIn(results).flatMap((load) => {
    const of = (target: string) => cpuByRound(results, { pair, load, target })
    const [unstored, stored] = [of('Sluice'), of(storedTarget)]
    if (stored.size === 0) return []
    const spreads = [unstored, stored].map((values) => formatSpread([...values.values()], 2))
    const ratio = formatSpread(ratios(stored, unstored), 2)
    return [[formatLoad(load), ...spreads, ratio, hasBudget(load) ? '≤ 1.2 × not stored' : '']]
  })
  const name = `${formatPair(pair)}: CPU per event, µs`
  const header = [name, 'not stored', 'stored', 'stored / not stored', 'budget']
  return rows.length === 0 ? [] : [formatTable(header, rows)]
}

function hasBudget({ streams, tokensPerSecond }: StreamLoad): boolean {
  return streams === budgetStreams && tokensPerSecond > 0
}

function budgetOf({ isRelay }: Pair, load: StreamLoad): string {
  if (!hasBudget(load)) return ''
  return isRelay ? '≤ 1.3 × nginx' : '≤ 1.5 × nginx'
}

/** Lateness of events and memory per stream. */
function paceTable(results: readonly EventsResult[], pair: Pair): string {
  const header = [
    `${formatPair(pair)}: events/s`,
    ...['nginx', 'Sluice', 'expected', 'lag, ms (p50 / p99): nginx', 'Sluice'],
    'memory per stream, KiB',
  ]
  const rows = loadsIn(results).map((load) => {
    const { streams, tokensPerSecond } = load
    const of = (target: string) => pick(results, { pair, load, target })
    const rate = ({ report }: EventsResult) => report.window.tokens / (report.window.ms / 1000)
    const memory = of('Sluice').map((result) => result.memoryGrowthBytes / streams / 1024)
    return [
      formatLoad(load),
      ...['nginx', 'Sluice'].map((target) => formatMedian(of(target).map(rate), 0)),
      tokensPerSecond === 0 ? '' : `${streams * tokensPerSecond}`,
      ...['nginx', 'Sluice'].map((target) =>
        tokensPerSecond === 0 ? '' : formatLateness(of(target)),
      ),
      streams < streamsForMemory ? '' : formatSpread(memory, 0),
    ]
  })
  return formatTable(header, rows)
}

function splitTable(results: readonly EventsResult[], pairs: readonly Pair[]): string {
  const header = ['Sluice: CPU per event by thread, µs', ...splitHeader]
  const rows = pairs.flatMap((pair) =>
    loadsIn(results).map((load) => {
      const reports = pick(results, { pair, load, target: 'Sluice' }).map(({ report }) => report)
      const cells = splitCells(reports, 'tokens')
      return [`${formatPair(pair)}, ${formatLoad(load)}`, ...cells]
    }),
  )
  return formatTable(header, rows)
}

type Wanted = { readonly pair: Pair; readonly load: StreamLoad; readonly target: string }

function pick(results: readonly EventsResult[], wanted: Wanted): EventsResult[] {
  const { pair, load, target } = wanted
  return results.filter(
    (result) => belongsToPair(pair, target, result) && formatLoad(result.load) === formatLoad(load),
  )
}

function loadsIn(results: readonly EventsResult[]): StreamLoad[] {
  return [...new Map(results.map(({ load }) => [formatLoad(load), load])).values()]
}

function formatLateness(results: readonly EventsResult[]): string {
  const late = results.map(({ report }) => report.latenessMs)
  const medians = [late.map(({ p50 }) => p50), late.map(({ p99 }) => p99)]
  return medians.map((values) => formatMedian(values, 1)).join(' / ')
}

function formatMedian(values: readonly number[], digits: number): string {
  return values.length === 0 ? '-' : median(values).toFixed(digits)
}
