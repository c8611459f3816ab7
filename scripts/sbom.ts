import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord } from '#lib/json.ts'
import manifest from '../package.json' with { type: 'json' }
import { listProductionPackages, readPackage } from './third-party-notices.ts'

const root = join(import.meta.dir, '..')

/**
 * The components of a release in CycloneDX 1.6: the packages of the lock file with their hashes, and Bun
 * with its version. Two builds of one commit have the same document.
 */
export function renderSbom(): string {
  const lock = asRecord(Bun.JSONC.parse(readFileSync(join(root, 'bun.lock'), 'utf8')))
  const locked = asRecord(lock['packages'])
  const components = listProductionPackages()
    .map((key) => npmComponent(key, locked[key]))
    .toSorted((a, b) => a['bom-ref'].localeCompare(b['bom-ref'], 'en'))
  const [, bunVersion = ''] = manifest.packageManager.split('@')
  const own = purl(manifest.name, manifest.version)
  const bun = {
    'bom-ref': `pkg:github/oven-sh/bun@bun-v${bunVersion}`,
    type: 'platform',
    name: 'bun',
    version: bunVersion,
    purl: `pkg:github/oven-sh/bun@bun-v${bunVersion}`,
    licenses: [{ license: { id: 'MIT' } }],
  }
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        'bom-ref': own,
        type: 'application',
        name: manifest.name,
        version: manifest.version,
        purl: own,
        licenses: [{ license: { id: manifest.license } }],
      },
    },
    components: [bun, ...components],
    dependencies: [{ ref: own, dependsOn: [bun, ...components].map((one) => one['bom-ref']) }],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function npmComponent(key: string, entry: unknown) {
  const { name, version, license } = readPackage(key)
  const integrity = Array.isArray(entry) ? String(entry.at(-1)) : ''
  const [, base64] = /^sha512-(.+)$/.exec(integrity) ?? []
  return {
    'bom-ref': purl(name, version),
    type: 'library',
    name,
    version,
    purl: purl(name, version),
    licenses: [licenseOf(license)],
    ...(base64 === undefined
      ? {}
      : { hashes: [{ alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') }] }),
  }
}

/** What a package declares: an SPDX id, an expression of such, or other words. */
function licenseOf(declared: string) {
  if (/ (OR|AND) /.test(declared)) return { expression: declared }
  const isId = /^[\w.+-]+$/.test(declared) && declared !== 'BSD'
  return { license: isId ? { id: declared } : { name: declared } }
}

/** https://github.com/package-url/purl-spec: the `@` of a scope is encoded. */
function purl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}
