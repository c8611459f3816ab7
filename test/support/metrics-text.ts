import { expect } from 'bun:test'

/** The values of a scrape by the name of the metric with its labels. */
export function readMetrics(text: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter((line) => /^[a-z]/.test(line))
  return new Map(
    lines.map((line) => {
      const [, series = '', value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? []
      expect(series, line).not.toBe('')
      return [series, value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value)] as const
    }),
  )
}

/** The sum of all series of one metric. */
export function sumOfMetric(metrics: ReadonlyMap<string, number>, name: string): number {
  let sum = 0
  for (const [series, value] of metrics) {
    if (series === name || series.startsWith(`${name}{`)) sum += value
  }
  return sum
}
