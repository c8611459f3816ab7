import { expect, test } from 'bun:test'
import { join } from 'node:path'

const tracing = join(import.meta.dir, '../../../src/telemetry/tracing')

/** In a process of its own: other tests load the packages. */
const program = `
const { startTracing } = await import(${JSON.stringify(join(tracing, 'start-tracing.ts'))})
const { loadConfig } = await import('#config/load.ts')
const { createMetricRegistry } = await import('#telemetry/metrics.ts')
const log = { warn() {}, debug() {} }
for (const environment of JSON.parse(process.argv[1])) {
  const config = loadConfig(environment).tracing
  const metrics = createMetricRegistry({ seriesMax: 100 })
  const started = await startTracing({ config, log, metrics, version: '1', now: () => new Date(), fetch })
  const loaded = Object.keys(require.cache).filter((path) => path.includes('/@opentelemetry/'))
  console.log(started === null, loaded.length > 0)
}`

test('the OpenTelemetry packages are loaded only with a collector in the configuration', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }
  const environments = [{}, { ...endpoint, OTEL_SDK_DISABLED: 'true' }, endpoint]
  const { stdout, stderr } = Bun.spawnSync(
    [process.execPath, '-e', program, JSON.stringify(environments)],
    { cwd: join(import.meta.dir, '../../..') },
  )
  expect(stdout.toString(), stderr.toString()).toBe('true false\ntrue false\nfalse true\n')
})
