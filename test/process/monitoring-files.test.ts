import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyMetrics } from '#inference/metrics.ts'
import { asRecord, isRecord } from '#lib/json.ts'
import { tracingMetrics } from '#telemetry/tracing/start-tracing.ts'
import { startGatewayProcess, stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { listMetrics } from '../../scripts/metrics-reference.ts'

/** The dashboard, rules and alerts in `deploy`, beside the metrics of a real gateway. */

const prometheusFolder = join(import.meta.dir, '../../deploy/prometheus')
const rulesFiles = ['sluice-rules.yaml', 'sluice-alerts.yaml'].map((name) =>
  join(prometheusFolder, name),
)
const dashboard = asRecord(
  JSON.parse(readFileSync(join(import.meta.dir, '../../deploy/grafana/sluice.json'), 'utf8')),
)
const declared = new Map(
  listMetrics().flatMap(([, metrics]) => metrics.map((metric) => [metric.name, metric] as const)),
)
const promtool = Bun.which('promtool')

let scraped = ''
/** Types by the names of the scraped metrics. */
let families: ReadonlyMap<string, string> = new Map()

beforeAll(async () => {
  const gateway = await startGatewayProcess()
  const body = { model: 'demo-fast', input: 'hi', stream: true, store: false }
  expect(await (await gateway.ask(body)).text()).toContain('response.completed')
  expect((await gateway.ask({ model: 'nobody', input: 'hi' })).status).toBe(404)
  scraped = await (await fetch(`${gateway.url()}/metrics`)).text()
  const types = [...scraped.matchAll(/^# TYPE (\w+) (\w+)$/gm)]
  families = new Map(types.map(([, name = '', type = '']) => [name, type]))
  await stopProcesses()
})
afterAll(stopProcesses)

type Rule = { record?: string; alert?: string; expr: string }
function rulesOf(path: string): Rule[] {
  const { groups } = Bun.YAML.parse(readFileSync(path, 'utf8')) as { groups: { rules: Rule[] }[] }
  return groups.flatMap(({ rules }) => rules)
}
const rules = rulesFiles.flatMap(rulesOf)
const recorded = new Set(rules.flatMap(({ record }) => (record === undefined ? [] : [record])))

type Panel = Record<string, unknown>
const panels = (dashboard['panels'] as Panel[]).filter(({ type }) => type !== 'row')
const panelExpressions = panels.flatMap(({ targets }) =>
  (targets as { expr: string }[]).map(({ expr }) => expr),
)
const variables = (asRecord(dashboard['templating'])['list'] as Panel[]).flatMap(({ query }) =>
  isRecord(query) ? [String(query['query'])] : [],
)
const expressions = [...rules.map(({ expr }) => expr), ...panelExpressions, ...variables]

/** Names of metrics with their label matchers. */
function selectorsOf(expression: string): (readonly [name: string, labels: string[]])[] {
  const found = expression.matchAll(/\b((?:sluice|gen_ai|process)_\w+)(?:\{([^}]*)\})?/g)
  return [...found]
    .filter(([whole, , matchers]) => matchers !== undefined || !isLabel(whole))
    .map(([, name = '', matchers = '']) => {
      return [name, [...matchers.matchAll(/(\w+)(?:=|!)/g)].map(([, label = '']) => label)]
    })
}

/** Labels that begin like a metric. */
const isLabel = (name: string) => ['gen_ai_operation_name', 'gen_ai_token_type'].includes(name)

function familyOf(name: string): string {
  return families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')
}

test('a scrape has each metric that the documentation lists, with its type, and no other', () => {
  const configured = [keyMetrics, tracingMetrics].flatMap((set) => Object.values(set))
  const optional = new Set<string>(configured.map(({ name }) => name))
  const listed = [...declared].filter(([name]) => !optional.has(name))
  expect([...families].toSorted()).toEqual(
    listed.map(([name, { type }]): [string, string] => [name, type]).toSorted(),
  )
})

test('each metric of the dashboard, rules and alerts exists in a scrape, with the labels named', () => {
  const selectors = expressions.flatMap(selectorsOf)
  expect(selectors.length).toBeGreaterThan(80)
  const unknown = selectors.filter(([name]) => !families.has(familyOf(name)))
  expect(unknown).toEqual([])
  const everywhere = ['job', 'instance', 'le']
  const wrong = selectors.flatMap(([name, labels]) => {
    const known = [...everywhere, ...(declared.get(familyOf(name))?.labels ?? [])]
    return labels.filter((label) => !known.includes(label)).map((label) => `${name}{${label}}`)
  })
  expect(wrong).toEqual([])
})

test('histograms are read through their series, and counters through a rate', () => {
  const wrong = expressions.flatMap(selectorsOf).filter(([name]) => {
    return families.get(name) === 'histogram'
  })
  expect(wrong).toEqual([])
})

test('alerts use recorded series that exist', () => {
  const used = expressions.flatMap((expr) => expr.match(/sluice:\w+(?::\w+)*/g) ?? [])
  expect(used.length).toBeGreaterThan(0)
  expect(used.filter((name) => !recorded.has(name))).toEqual([])
})

test('every alert has a severity, a text and a unit test', () => {
  const cases = readFileSync(join(prometheusFolder, 'sluice-alerts.test.yaml'), 'utf8')
  for (const rule of rules.filter(({ alert }) => alert !== undefined)) {
    const { alert, labels, annotations } = rule as Rule & Record<string, Record<string, string>>
    expect(labels, alert).toEqual({ severity: expect.stringMatching(/^(critical|warning)$/) })
    expect(Object.keys(annotations ?? {}), alert).toEqual(['summary', 'description'])
    expect(cases).toContain(`ALERTS{alertname="${alert}", alertstate="firing"`)
  }
})

const chosenSource = ['$', '{datasource}'].join('')

test('the panels of the dashboard have ids of their own, a place, and the chosen data source', () => {
  const all = dashboard['panels'] as Panel[]
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  const cells = new Set<string>()
  for (const { title, gridPos, datasource, type } of all) {
    const { x, y, w, h } = gridPos as Record<'x' | 'y' | 'w' | 'h', number>
    expect(x + w, String(title)).toBeLessThanOrEqual(24)
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        expect(cells.has(`${column},${line}`), `${title} overlaps`).toBe(false)
        cells.add(`${column},${line}`)
      }
    }
    if (type !== 'row') expect(datasource).toEqual({ type: 'prometheus', uid: chosenSource })
  }
})

function run(args: readonly string[], input = '') {
  const { exitCode, stdout, stderr } = Bun.spawnSync([promtool ?? '', ...args], {
    cwd: prometheusFolder,
    stdin: Buffer.from(input),
  })
  return { exitCode, output: `${stdout}${stderr}` }
}

test.skipIf(promtool === null)('promtool finds no fault in a scrape', () => {
  expect(run(['check', 'metrics'], scraped)).toEqual({ exitCode: 0, output: '' })
})

test.skipIf(promtool === null)(
  'promtool accepts the rules, and each alert fires when it should',
  () => {
    expect(run(['check', 'rules', ...rulesFiles])).toMatchObject({ exitCode: 0 })
    const { exitCode, output } = run(['test', 'rules', 'sluice-alerts.test.yaml'])
    expect(output).toContain('SUCCESS')
    expect(exitCode).toBe(0)
  },
)

test.skipIf(promtool === null)('promtool can parse the expressions of the dashboard', () => {
  const path = join(temporaryFolder(), 'panels.yaml')
  const values: Readonly<Record<string, string>> = { __rate_interval: '5m' }
  const filled = panelExpressions.map((expr) =>
    expr.replace(/\$(\w+)/g, (_, name: string) => values[name] ?? '.*'),
  )
  const records = filled.map((expr, at) => ({ record: `panel_${at}`, expr }))
  writeFileSync(path, JSON.stringify({ groups: [{ name: 'panels', rules: records }] }))
  expect(run(['check', 'rules', path])).toMatchObject({ exitCode: 0 })
})
