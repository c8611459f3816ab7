import { cpuUsPer, splitCells, splitHeader } from './cpu-split.ts'
import { belongsToPair, formatPair, type Pair, type TargetResult } from './pairs.ts'
import { peerNote } from './peers.ts'
import { differences, type RoundValues, ratios, valuesByRound } from './rounds.ts'
import { formatSpread, formatTable } from './table.ts'

export type Measure = {
  /**
   * `streamed`: paced, the first token immediately. `whole`: not streamed. `stored`: the same, and
   * stored. `models`: the list of models. `burst`: one stream on each of many new connections.
   */
  readonly kind: 'streamed' | 'whole' | 'stored' | 'models' | 'burst'
  readonly tokens: number
  readonly clients: number
}

/** One job on one target in one round. */
export type Result = TargetResult & { readonly measure: Measure }

type Columns = {
  readonly pair: Pair
  readonly peers: readonly string[]
  /** Whether a second gateway with other settings was measured. */
  readonly hasVariant: boolean
}

/** A row of the latency table. */
type Row = {
  readonly title: string
  readonly measure: Measure
  readonly metric: (result: Result) => number
  readonly budget: string
}

/** CPU of Sluice, as a multiple of that of nginx. */
const budgets: ReadonlyMap<string, string> = new Map([
  ['not streamed, 20 tokens, 64 clients', '≤ 5 × nginx'],
  ['not streamed, 1000 tokens, 8 clients', '≤ 6 × nginx'],
  ['stored, 20 tokens, 64 clients', '≤ 2 × not stored'],
  ['models, 64 clients', '≤ 5 × nginx'],
])

/** Per pair: latency, CPU and throughput; then CPU by thread. */
export function formatResults(
  results: readonly Result[],
  pairs: readonly Pair[],
  peerNames: readonly string[],
): string {
  const hasVariant = results.some(({ target }) => target === 'variant')
  const hasRequests = results.some(({ measure }) => measure.kind !== 'burst')
  const tables = pairs.flatMap((pair) => {
    const peers = pair.upstream === 'chat' ? peerNames : []
    const columns = { pair, peers, hasVariant }
    const bursts = burstTable(results, columns)
    return hasRequests
      ? [
          timeTable(results, columns),
          bursts,
          cpuTable(results, columns),
          rateTable(results, columns),
        ]
      : [bursts]
  })
  return [
    ...tables,
    ...(hasRequests ? [splitTable(results, pairs)] : []),
    ...(peerNames.length === 0 ? [] : [peerNote]),
  ].join('\n\n')
}

/** The time until half of the streams of a burst have begun, with that of the upstream. */
function burstTable(results: readonly Result[], { pair, peers }: Columns): string {
  const others = ['nginx', 'floor', 'Sluice', ...peers]
  const rows = measuresIn(results)
    .filter(({ kind }) => kind === 'burst')
    .map((measure) => {
      const of = (target: string) =>
        valuesByRound(
          pick(results, { pair, measure, target }),
          ({ report }) => report.firstTokenMs.p50,
        )
      const nginx = of('nginx')
      return [
        `${measure.clients} clients`,
        ...['direct', ...others].map((name) => formatSpread([...of(name).values()], 0)),
        ...['floor', 'Sluice'].map((name) => formatSpread(ratios(of(name), nginx), 2)),
        '≤ 2.5 × nginx',
      ]
    })
  const names = others.map((name) => (peers.includes(name) ? `${name} *` : name))
  const header = ['direct', ...names, 'floor / nginx', 'Sluice / nginx', 'budget']
  return formatTable(
    [`${formatPair(pair)}: half of a burst has its first event after, ms`, ...header],
    rows,
  )
}

function timeTable(results: readonly Result[], { pair, peers }: Columns): string {
  const others = ['nginx', 'floor', 'Sluice', ...peers]
  const header = [
    `${formatPair(pair)}: added time, ms`,
    'direct',
    ...others.map((name) => `${name} adds${peers.includes(name) ? ' *' : ''}`),
    'budget',
  ]
  const rows = measuresIn(results)
    .flatMap(timeRows)
    .map(({ title, measure, metric, budget }) => {
      const of = (target: string) => valuesByRound(pick(results, { pair, measure, target }), metric)
      const direct = of('direct')
      const added = others.map((name) => formatSpread(differences(of(name), direct), 2))
      return [title, formatSpread([...direct.values()], 2), ...added, budget]
    })
  return formatTable(header, rows)
}

function timeRows(measure: Measure): Row[] {
  const { kind, clients } = measure
  const isFirst = clients === 1
  if (kind === 'burst') {
    const row = (what: string, metric: Row['metric']) => {
      const title = `${formatMeasure(measure)}, first event, ${what}`
      return { title, measure, metric, budget: '' }
    }
    return [
      row('p50', ({ report }) => report.firstTokenMs.p50),
      row('last', ({ report }) => report.begun.lastAfterMs),
    ]
  }
  const rows = (what: string, times: 'firstTokenMs' | 'wholeMs', budgets: readonly string[]) =>
    (['p50', 'p99'] as const).map((quantile, index) => ({
      title: `${what}, ${formatClients(clients)}, ${quantile}`,
      measure,
      metric: ({ report }: Result) => report[times][quantile],
      budget: isFirst ? (budgets[index] ?? '') : '',
    }))
  if (kind !== 'streamed') return rows(formatKind(measure), 'wholeMs', [])
  return [
    ...rows('streamed, first event', 'firstTokenMs', ['≤ 0.4', '≤ 1.5']),
    ...rows('streamed, whole response', 'wholeMs', []),
  ]
}

function cpuTable(results: readonly Result[], { pair, peers, hasVariant }: Columns): string {
  const header = [
    `${formatPair(pair)}: CPU per request, µs`,
    'nginx',
    'floor',
    'Sluice',
    'floor / nginx',
    'Sluice / nginx',
    ...(hasVariant ? ['variant', 'Sluice − variant'] : []),
    ...peers.map((name) => `${name} *`),
    'budget',
  ]
  const requests = measuresIn(results).filter(({ kind }) => kind !== 'burst')
  const rows = requests.map((measure) => {
    const of = (target: string) =>
      valuesByRound(pick(results, { pair, measure, target }), ({ report }) =>
        cpuUsPer('requests', report),
      )
    const [nginx, floor, sluice, variant] = [of('nginx'), of('floor'), of('Sluice'), of('variant')]
    return [
      formatMeasure(measure),
      ...[nginx, floor, sluice].map(formatCpu),
      ...[floor, sluice].map((values) => formatSpread(ratios(values, nginx), 2)),
      ...(hasVariant ? [formatCpu(variant), formatSpread(differences(sluice, variant), 1)] : []),
      ...peers.map((name) => formatCpu(of(name))),
      budgets.get(formatMeasure(measure)) ?? '',
    ]
  })
  return formatTable(header, rows)
}

/** Throughput of unstreamed responses; streamed ones are paced. */
function rateTable(results: readonly Result[], { pair, peers }: Columns): string {
  const names = ['direct', 'nginx', 'floor', 'Sluice', ...peers]
  const header = [`${formatPair(pair)}: responses/s`, ...names]
  const rows = measuresIn(results)
    .filter(({ kind }) => kind !== 'streamed' && kind !== 'burst')
    .map((measure) => [
      formatMeasure(measure),
      ...names.map((target) => {
        const picked = pick(results, { pair, measure, target })
        const rate = ({ report }: Result) => report.window.requests / (report.window.ms / 1000)
        return formatSpread([...valuesByRound(picked, rate).values()], 0)
      }),
    ])
  return formatTable(header, rows)
}

function splitTable(results: readonly Result[], pairs: readonly Pair[]): string {
  const header = ['Sluice: CPU per request by thread, µs', ...splitHeader]
  const rows = pairs.flatMap((pair) =>
    measuresIn(results)
      .filter(({ clients }) => clients === 8)
      .map((measure) => {
        const picked = pick(results, { pair, measure, target: 'Sluice' })
        const title = `${formatPair(pair)}, ${formatMeasure(measure)}`
        const reports = picked.map(({ report }) => report)
        return [title, ...splitCells(reports, 'requests')]
      }),
  )
  return formatTable(header, rows)
}

function pick(
  results: readonly Result[],
  wanted: { readonly pair: Pair; readonly measure: Measure; readonly target: string },
): Result[] {
  const { pair, measure, target } = wanted
  return results.filter(
    (result) =>
      belongsToPair(pair, target, result) &&
      formatMeasure(result.measure) === formatMeasure(measure),
  )
}

function measuresIn(results: readonly Result[]): Measure[] {
  return [...new Map(results.map(({ measure }) => [formatMeasure(measure), measure])).values()]
}

function formatCpu(values: RoundValues): string {
  return formatSpread([...values.values()], 1)
}

function formatKind({ kind, tokens }: Measure): string {
  if (kind === 'models' || kind === 'burst') return kind
  return `${kind === 'whole' ? 'not streamed' : kind}, ${tokens} tokens`
}

export function formatMeasure(measure: Measure): string {
  return `${formatKind(measure)}, ${formatClients(measure.clients)}`
}

function formatClients(clients: number): string {
  return clients === 1 ? '1 client' : `${clients} clients`
}
