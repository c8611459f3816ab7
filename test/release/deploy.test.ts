import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '#config/load.ts'
import { asRecord } from '#lib/json.ts'
import manifest from '#package.json' with { type: 'json' }
import { stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { contextPaths } from './installed-build.ts'

afterAll(stopProcesses)

const root = join(import.meta.dir, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const chart = 'deploy/helm/sluice'

test('the image is built with the Bun of the project and does not run as root', () => {
  const dockerfile = read('deploy/Dockerfile')
  expect(dockerfile).toContain(`FROM oven/bun:${manifest.packageManager.split('@')[1]} AS build`)
  const [, user] = /^USER (\d+):\d+$/m.exec(dockerfile) ?? []
  expect(Number(user)).toBeGreaterThan(0)
  expect(dockerfile).toContain('CMD ["sluice", "health"]')
  expect(dockerfile.lastIndexOf('USER')).toBeLessThan(dockerfile.indexOf('ENTRYPOINT'))
})

/** That it has what the build needs is shown by the build of the other release tests. */
test('the build context of the image has nothing secret', () => {
  expect(read('.dockerignore').split('\n')[0]).toBe('*')
  const paths = contextPaths()
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  expect(paths.filter((path) => /env|data|\.git|sluice\.toml/.test(path))).toEqual([])
})

test('the compose file configures a valid gateway with a read-only root', () => {
  const { services } = Bun.YAML.parse(read('deploy/compose/compose.yaml')) as {
    services: Record<string, Record<string, unknown>>
  }
  expect(Object.keys(services)).toEqual(['sluice', 'postgres', 's3'])
  const sluice = services['sluice'] ?? {}
  expect(sluice).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
  const fromFile: Record<string, string> = {
    POSTGRES_PASSWORD: 'a',
    JWT_SECRET: 's'.repeat(32),
    S3_ACCESS_KEY_ID: 'b',
    S3_SECRET_ACCESS_KEY: 'c',
  }
  const environment = Object.entries(asRecord(sluice['environment'])).map(([name, value]) => [
    name,
    String(value).replace(/\$\{(\w+)(?::[-?]([^}]*))?\}/g, (_, variable, fallback) => {
      return fromFile[variable] ?? (/\?/.test(String(value)) ? '' : (fallback ?? ''))
    }),
  ])
  const config = loadConfig(Object.fromEntries(environment))
  expect(config).toMatchObject({ workers: 2, s3: { bucket: 'sluice', endpoint: 'http://s3:7070' } })
  const example = read('deploy/compose/example.env')
  for (const name of Object.keys(fromFile)) expect(example).toContain(`${name}=`)
})

test('the chart has the version of the program', () => {
  const { version, appVersion } = asRecord(Bun.YAML.parse(read(`${chart}/Chart.yaml`)))
  expect([version, appVersion]).toEqual([manifest.version, manifest.version])
})

test('the templates of the chart use all values and no others', () => {
  const templates = [...new Bun.Glob('templates/*').scanSync(join(root, chart))]
    .map((path) => read(join(chart, path)))
    .join('\n')
  const values = asRecord(Bun.YAML.parse(read(`${chart}/values.yaml`)))
  const used = [...templates.matchAll(/\.Values((?:\.\w+)+)/g)].map(([, path = '']) =>
    path.slice(1).split('.'),
  )
  const absent = used.filter(([section = '', key]) => {
    return !(section in values) || (key !== undefined && !(key in asRecord(values[section])))
  })
  expect(absent).toEqual([])
  const sections = new Set(used.map(([section]) => section))
  expect(Object.keys(values).filter((name) => !sections.has(name))).toEqual([])
})

const helm = Bun.which('helm')

test.skipIf(helm === null)('the chart renders with every feature, and says what it needs', () => {
  const values = join(temporaryFolder(), 'values.yaml')
  const settings = {
    existingSecret: 'secret',
    config: 'log_level = "debug"\n[limits]\nstreams_max = 100\n',
    env: { LOG_FORMAT: 'text', SLUICE_FILE_BYTES_MAX: 1_000_000_000, SLUICE_DOCS: false },
    autoscaling: { enabled: true },
    monitoring: { enabled: true, labels: { release: 'prometheus' } },
    ingress: { enabled: true, host: 'sluice.example', tlsSecret: 'tls', className: 'nginx' },
  }
  const render = (given: object) => {
    Bun.write(values, JSON.stringify(given))
    const { stdout, stderr, exitCode } = Bun.spawnSync([
      ...[
        helm ?? '',
        'template',
        'test',
        join(root, chart),
        '--kube-version',
        '1.31.0',
        '--values',
        values,
      ],
    ])
    return { text: stdout.toString(), stderr: stderr.toString(), exitCode }
  }
  expect(render({})).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('DATABASE_URL') })
  const { text, exitCode } = render(settings)
  expect(exitCode).toBe(0)
  const documents = text
    .split(/^---$/m)
    .map((part) => asRecord(Bun.YAML.parse(part)))
    .filter(({ kind }) => kind !== undefined)
  expect(documents.map(({ kind }) => kind).toSorted()).toEqual([
    'ConfigMap',
    'ConfigMap',
    'Deployment',
    'HorizontalPodAutoscaler',
    'Ingress',
    'PodDisruptionBudget',
    'PrometheusRule',
    'Service',
    'Service',
    'ServiceAccount',
    'ServiceMonitor',
  ])
  const find = (kind: string) => documents.find((one) => one['kind'] === kind)
  expect(documents.filter(({ kind }) => kind === 'ConfigMap')).toContainEqual(
    expect.objectContaining({ data: { 'sluice.toml': settings.config } }),
  )
  const { spec } = asRecord(find('PrometheusRule'))
  expect(JSON.stringify(spec)).toContain('SluiceWorkersCrashing')
  expect(find('Deployment')).toMatchObject({
    spec: {
      template: {
        spec: {
          terminationGracePeriodSeconds: 55,
          securityContext: { runAsNonRoot: true },
          containers: [
            {
              securityContext: { readOnlyRootFilesystem: true },
              ports: [{ name: 'http' }, { name: 'metrics', containerPort: 9464 }],
              env: expect.arrayContaining([
                { name: 'LOG_FORMAT', value: 'text' },
                { name: 'SLUICE_FILE_BYTES_MAX', value: '1000000000' },
                { name: 'SLUICE_DOCS', value: 'false' },
              ]),
            },
          ],
        },
      },
    },
  })
})

const analyze = Bun.which('systemd-analyze')

test.skipIf(analyze === null)('the systemd unit is valid', () => {
  const path = join(root, 'deploy/systemd/sluice.service')
  const { stderr } = Bun.spawnSync([analyze ?? '', 'verify', '--man=no', path])
  // The program itself is not installed here.
  const faults = stderr
    .toString()
    .split('\n')
    .filter((line) => line.includes('sluice.service'))
  expect(faults.filter((line) => !line.includes('/usr/local/bin/sluice'))).toEqual([])
})
