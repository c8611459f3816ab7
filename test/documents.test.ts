import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { loadConfig } from '#config/load.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { renderConfigReference } from '../scripts/config-reference.ts'
import { renderMetricsReference } from '../scripts/metrics-reference.ts'
import { renderNotices } from '../scripts/third-party-notices.ts'

const stale = 'run `bun run docs:generate` and commit the result'

test('the configuration reference is current', () => {
  expect(read('docs/configuration.md') === renderConfigReference(), stale).toBe(true)
})

test('the list of metrics is current', () => {
  expect(read('docs/metrics.md') === renderMetricsReference(), stale).toBe(true)
})

test('the third-party notices are current', () => {
  expect(read('THIRD_PARTY_NOTICES') === renderNotices(), stale).toBe(true)
})

test.each(readdirSync('examples'))('the example %s is a valid configuration', (name) => {
  const environment = { SLUICE_CONFIG: `examples/${name}`, VENDOR_KEY: 'k', SPEECH_KEY: 'k' }
  const databaseUrl = 'postgres://sluice@db.internal/sluice'
  const config = loadConfig({ ...environment, DATABASE_URL: databaseUrl }, [
    upstreamFaults,
    engineFaults,
  ])
  expect(Object.keys(config.sources)).not.toBeEmpty()
})

test('relative links of the documents resolve to files', () => {
  const documents = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md']
  const names = readdirSync('docs').filter((name) => name !== 'console')
  const pages = names.map((name) => `docs/${name}`)
  const broken = [...documents, ...pages, 'bench/README.md'].flatMap((path) =>
    [...read(path).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)]
      .map((match) => new URL(match[1] ?? '', `file://${process.cwd()}/${path}`))
      .filter((url) => !existsSync(url))
      .map((url) => `${path} links to ${url.pathname.slice(process.cwd().length + 1)}`),
  )
  expect(broken).toEqual([])
})

function read(path: string): string {
  return readFileSync(path, 'utf8')
}
