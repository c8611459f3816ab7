/** Formats a table that is readable in a terminal and valid Markdown. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`
  return [line(header), rule, ...rows.map(line)].join('\n')
}

/** Median with minimum and maximum: `7.2 (6.9 … 7.8)`. NaN values are ignored. */
export function formatSpread(numbers: readonly number[], digits: number): string {
  const values = numbers.filter((value) => Number.isFinite(value))
  if (values.length === 0) return '-'
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const middle = median(values).toFixed(digits)
  return values.length === 1
    ? middle
    : `${middle} (${low.toFixed(digits)} … ${high.toFixed(digits)})`
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
  return (lower + upper) / 2
}
