import { axisOf, formatTick, type Scale } from './chart-axis.ts'

/** A value, with minimum and maximum if it is a median. */
export type ChartPoint = {
  readonly x: number
  readonly y: number
  readonly low?: number
  readonly high?: number
}

export type ChartLine = { readonly name: string; readonly points: readonly ChartPoint[] }

export type Chart = {
  readonly title: string
  /** Text alternative. */
  readonly description: string
  /** Axis names with units. */
  readonly xLabel: string
  readonly yLabel: string
  readonly xScale: Scale
  readonly yScale: Scale
  /** At most one per colour. */
  readonly lines: readonly ChartLine[]
}

const size = { width: 720, height: 420 }
const plot = { left: 72, right: 684, top: 84, bottom: 360 }
const titleY = 30
const legend = { y: 56, swatch: 26, gap: 22, charWidth: 7.4 }
const tickLength = 5
const capWidth = 6
/** Maximum markers per line. */
const markersMax = 12
const linesMax = 4

/** Colour-blind safe colours, and a different dash per line. */
const style = `
  svg { --paper: #ffffff; --ink: #1f2328; --faint: #d5dae0; --soft: #59636e;
    --c0: #0969da; --c1: #bc4c00; --c2: #1a7f37; --c3: #8250df; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --faint: #30363d; --soft: #9198a1;
      --c0: #58a6ff; --c1: #f0883e; --c2: #56d364; --c3: #bc8cff; }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--soft); }
  .title { font-size: 16px; font-weight: 600; fill: var(--ink); }
  .name { fill: var(--ink); }
  .paper { fill: var(--paper); }
  .grid { stroke: var(--faint); stroke-width: 1; }
  .axis { stroke: var(--soft); stroke-width: 1; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
  .range { stroke-width: 1; fill: none; }
  .l0 { stroke: var(--c0); } .l1 { stroke: var(--c1); stroke-dasharray: 7 5; }
  .l2 { stroke: var(--c2); stroke-dasharray: 2 5; } .l3 { stroke: var(--c3); stroke-dasharray: 12 4 2 4; }
  .m0 { fill: var(--c0); } .m1 { fill: var(--c1); } .m2 { fill: var(--c2); } .m3 { fill: var(--c3); }
  .r0 { stroke: var(--c0); } .r1 { stroke: var(--c1); } .r2 { stroke: var(--c2); }
  .r3 { stroke: var(--c3); }`

/**
 * Draws lines over two axes as SVG, following the reader's colour scheme. Throws without points.
 */
export function drawChart(chart: Chart): string {
  const lines = chart.lines.slice(0, linesMax).map(({ name, points }) => ({
    name,
    points: points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y)),
  }))
  const points = lines.flatMap((line) => line.points)
  if (points.length === 0) throw new Error(`the chart "${chart.title}" has no points`)
  const x = axisOf(
    points.map((point) => point.x),
    {
      scale: chart.xScale,
      from: plot.left,
      to: plot.right,
    },
  )
  const heights = points.flatMap(({ y: own, low = own, high = own }) => [low, high])
  const y = axisOf([0, ...heights], {
    scale: chart.yScale,
    from: plot.bottom,
    to: plot.top,
  })
  const place = (point: ChartPoint): PlacedPoint => ({
    x: x.place(point.x),
    y: y.place(point.y),
    low: point.low === undefined ? null : y.place(point.low),
    high: point.high === undefined ? null : y.place(point.high),
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}" role="img" aria-labelledby="title description">`,
    `<title id="title">${asXml(chart.title)}</title>`,
    `<desc id="description">${asXml(chart.description)}</desc>`,
    `<style>${style}</style>`,
    `<rect class="paper" width="${size.width}" height="${size.height}"/>`,
    `<text class="title" x="${plot.left}" y="${titleY}">${asXml(chart.title)}</text>`,
    ...drawLegend(lines.map(({ name }) => name)),
    ...x.ticks.map((tick) => drawXTick(x.place(tick), formatTick(tick))),
    ...y.ticks.map((tick) => drawYTick(y.place(tick), formatTick(tick))),
    `<line class="axis" x1="${plot.left}" y1="${plot.bottom}" x2="${plot.right}" y2="${plot.bottom}"/>`,
    ...drawAxisNames(chart),
    ...lines.map(({ points: own }, number) => drawLine(own.map(place), number)),
    '</svg>',
    '',
  ].join('\n')
}

type PlacedPoint = { x: number; y: number; low: number | null; high: number | null }

function drawLegend(names: readonly string[]): string[] {
  let left = plot.left
  return names.map((name, number) => {
    const at = left
    left += legend.swatch + 6 + name.length * legend.charWidth + legend.gap
    return [
      `<line class="line l${number}" x1="${at}" y1="${legend.y}" x2="${at + legend.swatch}" y2="${legend.y}"/>`,
      `<text class="name" x="${rounded(at + legend.swatch + 6)}" y="${legend.y + 4}">${asXml(name)}</text>`,
    ].join('\n')
  })
}

function drawXTick(at: number, text: string): string {
  const x = rounded(at)
  return [
    `<line class="axis" x1="${x}" y1="${plot.bottom}" x2="${x}" y2="${plot.bottom + tickLength}"/>`,
    `<text x="${x}" y="${plot.bottom + 20}" text-anchor="middle">${text}</text>`,
  ].join('\n')
}

function drawYTick(at: number, text: string): string {
  const y = rounded(at)
  return [
    `<line class="grid" x1="${plot.left}" y1="${y}" x2="${plot.right}" y2="${y}"/>`,
    `<text x="${plot.left - 8}" y="${rounded(at + 4)}" text-anchor="end">${text}</text>`,
  ].join('\n')
}

function drawAxisNames({ xLabel, yLabel }: Chart): string[] {
  const middle = { x: (plot.left + plot.right) / 2, y: (plot.top + plot.bottom) / 2 }
  return [
    `<text x="${middle.x}" y="${size.height - 14}" text-anchor="middle">${asXml(xLabel)}</text>`,
    `<text transform="translate(18 ${middle.y}) rotate(-90)" text-anchor="middle">${asXml(yLabel)}</text>`,
  ]
}

function drawLine(points: readonly PlacedPoint[], number: number): string {
  const path = points.map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${rounded(x)} ${rounded(y)}`)
  const markers = points.length > markersMax ? [] : points.map((point) => drawMarker(point, number))
  const ranges = points.map((point) => drawRange(point, number)).join('')
  return [`<path class="line l${number}" d="${path.join(' ')}"/>`, ranges, ...markers].join('\n')
}

function drawMarker({ x, y }: PlacedPoint, number: number): string {
  return `<circle class="m${number}" cx="${rounded(x)}" cy="${rounded(y)}" r="3.5"/>`
}

function drawRange({ x, low, high }: PlacedPoint, number: number): string {
  if (low === null || high === null || low === high) return ''
  const [left, right] = [rounded(x - capWidth / 2), rounded(x + capWidth / 2)]
  const [bottom, top] = [rounded(low), rounded(high)]
  const path = `M${left} ${bottom}H${right}M${left} ${top}H${right}M${rounded(x)} ${bottom}V${top}`
  return `<path class="range r${number}" d="${path}"/>`
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}

function asXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
