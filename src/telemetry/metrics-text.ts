import type { MetricDefinition } from './metric-definition.ts'
import type { MetricSnapshot, SeriesSnapshot } from './metric-snapshot.ts'

/** `prometheus`: the text format 0.0.4; `openmetrics`: OpenMetrics 1.0. */
export type MetricsFormat = 'prometheus' | 'openmetrics'

export const contentTypes: Readonly<Record<MetricsFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** OpenMetrics if the client names it, as Prometheus does; its other formats are not offered. */
export function formatOf(accept: string | null): MetricsFormat {
  const ranges = (accept ?? '').split(',').map((range) => range.trim().toLowerCase())
  const openMetrics = ranges.find((range) => range.startsWith('application/openmetrics-text'))
  return openMetrics === undefined || /;\s*q=0(\.0*)?$/.test(openMetrics)
    ? 'prometheus'
    : 'openmetrics'
}

export function renderMetrics(snapshots: readonly MetricSnapshot[], format: MetricsFormat): string {
  const text = snapshots.map((snapshot) => renderMetric(snapshot, format)).join('')
  return format === 'openmetrics' ? `${text}# EOF\n` : text
}

function renderMetric({ definition, series }: MetricSnapshot, format: MetricsFormat): string {
  const lines = [
    ...headOf(definition, format),
    ...series.flatMap((each) =>
      definition.type === 'histogram'
        ? histogramLines(definition, each, format)
        : [lineOf(definition.name, pairs(definition, each), each.values[0] ?? 0)],
    ),
  ]
  return `${lines.join('\n')}\n`
}

function headOf({ name, help, type }: MetricDefinition, format: MetricsFormat): string[] {
  if (format === 'prometheus')
    return [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`]
  // The suffix belongs to the sample, not to the family.
  const family = type === 'counter' ? name.replace(/_total$/, '') : name
  const unit = /_(seconds|bytes|ratio)$/.exec(family)?.[1]
  return [
    `# TYPE ${family} ${type}`,
    ...(unit === undefined ? [] : [`# UNIT ${family} ${unit}`]),
    `# HELP ${family} ${escapeHelp(help).replaceAll('"', '\\"')}`,
  ]
}

function histogramLines(
  definition: MetricDefinition & { readonly type: 'histogram' },
  series: SeriesSnapshot,
  format: MetricsFormat,
): string[] {
  const { name, bounds } = definition
  const own = pairs(definition, series)
  let total = 0
  const buckets = series.values.slice(0, -1).map((count, at) => {
    total += count
    const bound = boundText(bounds[at] ?? Number.POSITIVE_INFINITY, format)
    return lineOf(`${name}_bucket`, [...own, ['le', bound]], total)
  })
  return [
    ...buckets,
    lineOf(`${name}_sum`, own, series.values.at(-1) ?? 0),
    lineOf(`${name}_count`, own, total),
  ]
}

type Pair = readonly [name: string, value: string]

function pairs({ labels = [] }: MetricDefinition, series: SeriesSnapshot): Pair[] {
  return labels.map((name, at) => [name, series.labels[at] ?? ''] as const)
}

function lineOf(name: string, labels: readonly Pair[], value: number): string {
  return `${name}${labelText(labels)} ${numberText(value)}`
}

function labelText(labels: readonly Pair[]): string {
  if (labels.length === 0) return ''
  return `{${labels.map(([name, value]) => `${name}="${escapeLabel(value)}"`).join(',')}}`
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

/** OpenMetrics asks for a point in every bound: `1.0`. */
function boundText(bound: number, format: MetricsFormat): string {
  const text = numberText(bound)
  return format === 'openmetrics' && /^\d+$/.test(text) ? `${text}.0` : text
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}
