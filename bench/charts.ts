import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isRecord, parseJson } from '#lib/json.ts'
import { type Chart, drawChart } from './support/chart.ts'
import { eventsCharts, memoryCharts } from './support/chart-results.ts'

export const summary =
  'Draws charts from JSON results: CPU per event against streams, memory against time.'
export const usage = '[--from bench/scratch] [--to bench/results]'

/** File names without extension. */
type Drawings = ReadonlyMap<string, Chart>

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      from: { type: 'string', default: 'bench/scratch' },
      to: { type: 'string', default: 'bench/results' },
    },
  })
  const drawings = readdirSync(values.from)
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .flatMap((name) => [...chartsOf(readFileSync(join(values.from, name), 'utf8'))])
  mkdirSync(values.to, { recursive: true })
  for (const [name, chart] of drawings) {
    const file = join(values.to, `${name}.svg`)
    writeFileSync(file, drawChart(chart))
    console.log(file)
  }
  if (drawings.length > 0) return 0
  console.error(`${values.from} holds no result that can be drawn`)
  return 1
}

/** The charts of one result; none if it has no series. */
function chartsOf(text: string): Drawings {
  const result = parseJson(text)
  if (!isRecord(result)) return new Map()
  switch (result['bench']) {
    case 'events':
      return eventsCharts(result['results'])
    case 'long-streams':
    case 'soak':
      return memoryCharts(result['bench'], result['memory'])
    default:
      return new Map()
  }
}
