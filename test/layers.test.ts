import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The layer rules: which files may import which. Paths are glob patterns from the root of the
 * repository; an imported package has its own name. A rule either lists what `files` may import of
 * this repository (`only`), or what they must not import (`never`).
 */
type LayerRule = {
  readonly files: string | readonly string[]
  readonly except?: string | readonly string[]
  readonly only?: readonly string[]
  readonly never?: readonly string[]
  readonly reason: string
}

const composition = ['src/app.ts', 'src/modules.ts', 'src/warm-up.ts', 'src/worker.ts']
const httpFramework = ['elysia', 'elysia/**', '@elysiajs/**', 'src/http/**']
const database = ['db/**', 'drizzle-orm', 'drizzle-orm/**', 'postgres']
const routeFiles = ['src/**/*routes.ts', 'src/**/*endpoints.ts', 'src/**/module.ts']
const composing = [
  'src/doctor/**',
  'src/app.ts',
  'src/modules.ts',
  'src/warm-up.ts',
  'src/worker.ts',
  'src/start.ts',
  'src/print-config.ts',
]

const rules: readonly LayerRule[] = [
  { files: 'src/lib/**', only: ['src/lib/**'], reason: 'lib is the innermost layer' },
  {
    files: 'db/**',
    only: ['db/**', 'src/telemetry/log.ts', 'src/lib/**'],
    reason: 'the database layer knows drizzle and no feature',
  },
  {
    files: ['src/config/**', 'src/telemetry/**'],
    only: ['src/config/**', 'src/telemetry/**', 'src/lib/**', 'src/**/config.ts'],
    reason: 'configuration and telemetry depend on lib and the keys of features',
  },
  {
    files: 'src/**/config.ts',
    only: [
      'src/config/**',
      'src/lib/**',
      'src/auth/permissions.ts',
      'src/models/health-config.ts',
      'src/models/llama-config.ts',
      'src/models/model-config.ts',
      'src/models/flite-config.ts',
      'src/models/onnx-config.ts',
      'src/models/upstream-config.ts',
    ],
    reason: 'the supervisor loads the keys of every feature, and no feature',
  },
  {
    files: 'src/**',
    except: ['src/**/*store.ts', 'src/doctor/**'],
    never: ['db/schema/**', 'drizzle-orm', 'drizzle-orm/**'],
    reason: 'only stores query the database',
  },
  {
    files: 'src/inference/**',
    only: ['src/inference/**', 'src/telemetry/**', 'src/lib/**'],
    reason: 'inference knows no HTTP framework, database, configuration or surface',
  },
  {
    files: 'src/inference/upstreams/*/**',
    never: ['src/inference/inference.ts', 'src/inference/attempt.ts'],
    reason: 'an adapter implements the contract and never drives a generation',
  },
  {
    files: 'src/storage/**',
    except: ['src/**/module.ts', 'src/**/doctor.ts', 'src/**/config.ts'],
    only: ['src/storage/**', 'src/lib/**', 'src/telemetry/log.ts', 'src/config/schema.ts'],
    reason: 'storage depends on lib alone',
  },
  {
    files: 'src/outbound/**',
    only: ['src/outbound/**', 'src/lib/**', 'src/telemetry/**'],
    reason: 'outbound requests know nothing of the feature that sends them',
  },
  {
    files: 'src/sealing/**',
    except: ['src/**/*store.ts', 'src/**/module.ts', 'src/**/config.ts'],
    only: ['src/sealing/**', 'src/lib/**', 'src/telemetry/**'],
    reason: 'sealing knows keys and texts, not what is sealed',
  },
  {
    files: ['src/speech/engines/**', 'src/speech/decoders/**'],
    only: [
      'src/lib/**',
      'src/telemetry/log.ts',
      'src/config/schema.ts',
      'src/speech/engine.ts',
      'src/speech/voice-activity.ts',
      'src/speech/engines/**',
      'src/speech/decoders/**',
    ],
    reason: 'engines and decoders know their contract, never a session',
  },
  {
    files: 'src/**',
    except: composing,
    never: composition,
    reason: 'imports point inward: features never know the composition',
  },
  {
    files: 'src/**',
    except: ['src/surfaces/**', ...composing],
    never: ['src/surfaces/**'],
    reason: 'imports point inward: features never know a surface',
  },
  {
    files: 'src/surfaces/**',
    never: [
      'src/inference/upstreams/**',
      'src/inference/transport.ts',
      'src/inference/transport/**',
    ],
    reason: 'surfaces see events, never a vendor',
  },
  {
    files: 'console/src/**',
    only: ['src/lib/**', 'src/speech/decoders/**'],
    reason:
      'the console calls the API; of the gateway it shares what `web-console` rebuilds it for',
  },
  {
    files: 'src/http/**',
    never: ['src/inference/**', 'src/models/**', 'src/auth/**', ...database],
    reason: 'http serves every feature and knows none',
  },
  {
    files: 'src/auth/**',
    never: ['src/inference/**', 'src/models/**'],
    reason: 'authentication does not depend on what is requested',
  },
  {
    files: 'src/speech/**',
    never: ['src/models/**', 'src/inference/**', 'src/responses/**'],
    reason: 'speech is independent of the model surfaces',
  },
  {
    files: ['src/responses/**', 'src/hosted-tools/**'],
    never: httpFramework,
    reason: 'state and hosted tools know no HTTP framework',
  },
  {
    files: 'src/hosted-tools/**',
    never: ['src/inference/upstreams/**'],
    reason: 'a hosted tool knows events, never a vendor',
  },
  {
    files: 'src/rerank/**',
    never: ['src/retrieval/**'],
    reason: 'retrieval uses rerank, not the reverse',
  },
  {
    files: 'src/agents/**',
    never: ['src/models/**', 'src/inference/upstreams/**'],
    reason: 'an agent does not know who offers its model',
  },
  {
    files: [
      'src/agents/**',
      'src/files/**',
      'src/jobs/**',
      'src/embedding/**',
      'src/rerank/**',
      'src/retrieval/**',
      'src/settings/**',
      'src/translations/**',
      'src/branding/**',
      'src/audit/**',
      'src/directory/**',
      'src/installer/**',
      'src/speech/**',
    ],
    except: [...routeFiles, 'src/branding/logo/receive.ts', 'src/files/content/receive.ts'],
    never: httpFramework,
    reason: 'only routes know the HTTP framework',
  },
]

const root = join(import.meta.dir, '..')
const imports = ['src', 'db', 'console/src'].flatMap(listFiles).flatMap((file) => listImports(file))

test('every import follows the layer rules', () => {
  const broken = rules.flatMap((rule) =>
    imports
      .filter(({ file }) => matches(rule.files, file) && !matches(rule.except ?? [], file))
      .filter(({ imported }) => breaks(rule, imported))
      .map(({ file, imported }) => `${file} imports ${imported}: ${rule.reason}`),
  )
  expect(broken).toEqual([])
})

test('every layer rule matches a file', () => {
  const files = imports.map(({ file }) => file)
  const idle = rules.filter((rule) => !files.some((file) => matches(rule.files, file)))
  expect(idle).toEqual([])
})

test('an adapter never imports another adapter', () => {
  const adapterOf = (path: string) => /^src\/inference\/upstreams\/([^/]+)\//.exec(path)?.[1]
  const broken = imports.filter(({ file, imported }) => {
    const [own, other] = [adapterOf(file), adapterOf(imported)]
    return own !== undefined && other !== undefined && own !== other
  })
  expect(broken).toEqual([])
})

test('no feature queries through the store of another', () => {
  const featureOf = (path: string) => path.split('/')[1]
  const broken = imports.filter(
    ({ file, imported, isType }) =>
      !isType &&
      imported.endsWith('store.ts') &&
      imported.startsWith('src/') &&
      !file.endsWith('/module.ts') &&
      featureOf(file) !== featureOf(imported),
  )
  expect(broken).toEqual([])
})

function breaks({ only, never }: LayerRule, imported: string): boolean {
  const isOurs = imported.startsWith('src/') || imported.startsWith('db/')
  if (only !== undefined && isOurs && !matches(only, imported)) return true
  return never !== undefined && matches(never, imported)
}

function matches(patterns: string | readonly string[], path: string): boolean {
  return [patterns].flat().some((pattern) => new Bun.Glob(pattern).match(path))
}

function listFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => `${folder}/${path}`)
}

/** Every module that `file` imports: a path from the root of the repository, or a package name. */
function listImports(file: string): { file: string; imported: string; isType: boolean }[] {
  const text = readFileSync(join(root, file), 'utf8')
  const specifiers = text.matchAll(/(?:(import type [^']*)?\bfrom |\bimport |\bimport\()'([^']+)'/g)
  return [...specifiers].map(([, type, specifier = '']) => ({
    file,
    imported: resolve(file, specifier),
    isType: type !== undefined,
  }))
}

function resolve(file: string, specifier: string): string {
  if (/^\.\.?\//.test(specifier)) return join(file, '..', specifier)
  if (specifier.startsWith('#db/')) return specifier.slice(1)
  if (specifier.startsWith('#')) return `src/${specifier.slice(1)}`
  return specifier
}
