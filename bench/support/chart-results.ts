import type { Chart, ChartLine, ChartPoint } from './chart.ts'
import { cpuUsPer } from './cpu-split.ts'
import type { EventsResult } from './events-results.ts'
import { belongsToPair, formatPair, type Pair, pairNames, pairOf } from './pairs.ts'
import type { MemorySample } from './process-tree.ts'
import { median } from './table.ts'

/** Chart name and content. */
type Charts = ReadonlyMap<string, Chart>

/** CPU per event against the number of streams, one chart per protocol pair. */
export function eventsCharts(results: unknown): Charts {
  const paced = asResults(results).filter(({ load }) => load.tokensPerSecond > 0)
  const charts = pairNames.flatMap((name) => {
    const pair = pairOf(name)
    const lines = ['nginx', 'Sluice'].map((target) => ({
      name: target,
      points: pointsOf(paced.filter((result) => belongsToPair(pair, target, result))),
    }))
    const isMeasured = lines.some(({ name: target, points }) => {
      return target === 'Sluice' && points.length > 1
    })
    return isMeasured ? [[`events-${name}`, eventsChart(paced, pair, lines)] as const] : []
  })
  return new Map(charts)
}

function eventsChart(
  paced: readonly EventsResult[],
  pair: Pair,
  lines: readonly ChartLine[],
): Chart {
  const pace = paced[0]?.load.tokensPerSecond ?? 0
  const values = lines.map(({ name, points }) => {
    const described = points.map(({ x, y }) => `${y.toFixed(1)} µs with ${x}`)
    return `${name}: ${described.join(', ')}.`
  })
  return {
    title: `CPU per event, ${formatPair(pair)}`,
    description:
      `CPU per event of streams at ${pace} events/s, against the number of streams, ` +
      `beside nginx, which copies bytes. ${values.join(' ')}`,
    xLabel: `streams, ${pace} events/s each`,
    yLabel: 'CPU per event, µs',
    xScale: 'values',
    yScale: 'log',
    lines,
  }
}

/** Median over rounds, by number of streams. */
function pointsOf(results: readonly EventsResult[]): ChartPoint[] {
  const byStreams = Map.groupBy(results, ({ load }) => load.streams)
  return [...byStreams]
    .map(([streams, rounds]) => {
      const values = rounds.map(({ report }) => cpuUsPer('tokens', report)).filter(Number.isFinite)
      return {
        x: streams,
        y: median(values),
        low: Math.min(...values),
        high: Math.max(...values),
      }
    })
    .toSorted((one, other) => one.x - other.x)
}

const memoryTitles: Readonly<Record<string, string>> = {
  'long-streams': 'Memory while long streams run',
  soak: 'Memory under mixed load with faults',
}

/** Memory of the gateway's process tree against time. */
export function memoryCharts(bench: string, samples: unknown): Charts {
  const memory = asSamples(samples)
  const [first, last] = [memory[0], memory.at(-1)]
  if (first === undefined || last === undefined || memory.length < 2) return new Map()
  const mebibytes = memory.map(({ bytes }) => bytes / 2 ** 20)
  const chart: Chart = {
    title: memoryTitles[bench] ?? bench,
    description:
      `Memory of all processes of the gateway over ${Math.round(last.atMs / 1_000)} seconds: ` +
      `${mebibytes[0]?.toFixed(0)} MiB at the start, ${mebibytes.at(-1)?.toFixed(0)} MiB at the end, ` +
      `${Math.max(...mebibytes).toFixed(0)} MiB max.`,
    xLabel: 'time, s',
    yLabel: 'memory, MiB',
    xScale: 'linear',
    yScale: 'linear',
    lines: [
      {
        name: 'Sluice, all its processes',
        points: memory.map(({ atMs, bytes }) => ({ x: atMs / 1_000, y: bytes / 2 ** 20 })),
      },
    ],
  }
  return new Map([[`memory-${bench}`, chart]])
}

/** Results are trusted: the benchmarks wrote them. */
function asResults(value: unknown): readonly EventsResult[] {
  return Array.isArray(value) ? (value as EventsResult[]) : []
}

function asSamples(value: unknown): readonly MemorySample[] {
  return Array.isArray(value) ? (value as MemorySample[]) : []
}
