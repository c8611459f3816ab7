import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '#package.json' with { type: 'json' }
import { renderSbom } from '../../scripts/sbom.ts'

type Component = {
  'bom-ref': string
  name: string
  version: string
  purl: string
  hashes?: { alg: string; content: string }[]
  licenses: object[]
}

const { components, dependencies, metadata, ...document } = JSON.parse(renderSbom()) as {
  components: Component[]
  dependencies: { dependsOn: string[] }[]
  metadata: { component: Component }
  bomFormat: string
  specVersion: string
}

test('the list of components contains every dependency with its version and hash', () => {
  expect(document).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6' })
  expect(metadata.component).toMatchObject({ name: 'sluice', version: manifest.version })
  for (const [name, version] of Object.entries(manifest.dependencies)) {
    const found = components.find((one) => one.name === name && one.version === version)
    expect(found?.hashes?.[0]?.content, name).toMatch(/^[0-9a-f]{128}$/)
  }
  expect(components[0]).toMatchObject({ name: 'bun', version: '1.4.5' })
})

test('every component is listed once, with a licence, and as a dependency', () => {
  const refs = components.map((one) => one['bom-ref'])
  expect(new Set(refs).size).toBe(refs.length)
  expect(dependencies[0]?.dependsOn).toEqual(refs)
  for (const { name, licenses } of components) expect(licenses, name).toHaveLength(1)
  expect(components.map(({ name }) => name)).not.toContain('typescript')
})

test('a release is built from a tag, from the lock file alone, without scripts of packages', () => {
  const workflow = readFileSync(
    join(import.meta.dir, '../../.github/workflows/release.yml'),
    'utf8',
  )
  expect(workflow).toMatch(/^on:\n {2}push:\n {4}tags: \["v\*"\]$/m)
  const installs = workflow.match(/\b(bun|npm|npx|pnpm|yarn) (install|i|ci|add)\b.*/g)
  expect(installs).toEqual(['bun install --frozen-lockfile'])
  // Bun runs the scripts of these packages only.
  expect(manifest).not.toHaveProperty('trustedDependencies')
  const scripts = Object.keys(manifest.scripts).filter((name) =>
    /^(pre|post)?install|^prepare/.test(name),
  )
  expect(scripts).toEqual([])
})
