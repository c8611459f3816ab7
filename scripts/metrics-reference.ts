import { modules } from '#modules.ts'
import { fleetMetrics } from '#telemetry/fleet-metrics.ts'
import type { MetricDefinition, MetricSet } from '#telemetry/metric-definition.ts'
import { eventLoopMetrics, processMetrics } from '#telemetry/process-metrics.ts'
import { registryMetrics } from '#telemetry/registry-metrics.ts'
import { tracingMetrics } from '#telemetry/tracing/start-tracing.ts'

const intro = `# Metrics

Generated from the declarations of the metrics by \`bun run docs:generate\`; do not edit.

\`GET /metrics\` responds with the metrics of all workers of one gateway: whichever worker gets the
request asks the supervisor, which adds up the others. There is no label for a worker. Counters and
histograms do not fall when a worker restarts; \`kill -9\` loses at most the last 2 s of them. A worker
that does not report within 2 s is represented by its latest values, and counted in
\`sluice_workers_unresponsive\`.

The format is the Prometheus text format, or OpenMetrics if \`Accept\` names it.

## Scraping

Without a token, \`/metrics\` is for clients on the same machine. For Prometheus elsewhere, set a token, and
preferably a port of its own: the supervisor serves it, so that a scrape depends on no worker.

\`\`\`toml
[metrics]
token = "a-long-random-text"   # or SLUICE_METRICS_TOKEN
port = 9464                    # or SLUICE_METRICS_PORT; optional
\`\`\`

\`\`\`yaml
scrape_configs:
  - job_name: sluice
    authorization: { credentials: a-long-random-text }
    static_configs:
      - targets: ["gateway-1.internal:9464", "gateway-2.internal:9464"]

rule_files: ["/etc/prometheus/sluice-rules.yaml", "/etc/prometheus/sluice-alerts.yaml"]
\`\`\`

[deploy/prometheus](../deploy/prometheus) contains the recording rules and alerts, with unit tests for
\`promtool test rules\`; [deploy/grafana](../deploy/grafana/sluice.json) a dashboard (Dashboards → New →
Import). The Helm chart creates a ServiceMonitor, a PrometheusRule and a dashboard ConfigMap with
\`monitoring.enabled\` ([installation](installation.md)).

Metrics that replicas read from the database (\`sluice_jobs\`, \`sluice_jobs_oldest_due_seconds\`) are the same on
each replica: use \`max\`, not \`sum\`.

## Labels

| label | values |
|---|---|
| \`model\` | the model's name at the upstream; \`none\`: no upstream was tried |
| \`upstream\` | \`name\` of the \`[[upstream]]\` |
| \`route\` | the template of an endpoint, such as \`/v1/responses/:id\`; \`unmatched\`: no endpoint |
| \`status\` | the status of the HTTP response |
| \`gen_ai_operation_name\` | \`chat\`, \`embeddings\`, \`rerank\` |
| \`gen_ai_token_type\` | \`input\`, \`output\` |
| \`error_type\` | the code of the error; empty for a success |

A metric has at most 2,000 series in a gateway. Further label sets are added up in the series whose labels
are all \`other\`, and counted in \`sluice_metrics_overflow_total\`. No label holds a user, a raw path or a
process. Series by API key exist only with \`metrics.key_labels = true\`, at most \`metrics.key_series_max\`.

Names that begin with \`gen_ai_\` are those of the OpenTelemetry conventions for generative AI, with their
bounds; \`model\` and \`upstream\` stand for \`gen_ai.request.model\` and \`gen_ai.provider.name\`.
`

const titles: Readonly<Record<string, string>> = {
  auth: 'Authentication',
  models: 'Models, upstreams and queue',
  operations: 'HTTP, WebSockets and database',
  tls: 'TLS',
}

/** Each metric that the program declares, by the title of its section. */
export function listMetrics(): readonly (readonly [title: string, MetricDefinition[]])[] {
  const ofModules = modules.flatMap(({ name, metrics = [] }) =>
    metrics.length === 0
      ? []
      : [[titles[name] ?? capitalized(name), definitionsOf(metrics)] as const],
  )
  const ofProcess = [
    fleetMetrics,
    processMetrics,
    eventLoopMetrics,
    registryMetrics,
    tracingMetrics,
  ]
  return [...ofModules, ['Processes', definitionsOf(ofProcess)]]
}

/** docs/metrics.md. */
export function renderMetricsReference(): string {
  const sections = listMetrics().map(([title, metrics]) => `## ${title}\n\n${table(metrics)}`)
  return [intro, ...sections].join('\n')
}

function definitionsOf(sets: readonly MetricSet[]): MetricDefinition[] {
  return sets.flatMap((set) => Object.values(set))
}

function table(metrics: readonly MetricDefinition[]): string {
  const rows = metrics.map(({ name, help, labels = [], ...metric }) => {
    const type = metric.type === 'gauge' ? `gauge, ${across[metric.across]}` : metric.type
    const labelText = labels.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${labelText} | ${help} |`
  })
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...rows, ''].join('\n')
}

const across = {
  sum: 'sum of the workers',
  max: 'highest of the workers',
  min: 'lowest of the workers',
  same: 'of the gateway',
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}
