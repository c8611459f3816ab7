import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { listFastTests } from '#test/support/fast-tests.ts'

/**
 * Rules of this repository that a linter cannot check. Each failure names the file, the rule and
 * the remedy.
 */
const root = join(import.meta.dir, '..')
const linesMax = 300
const bytesMax = 500_000

const files = ['src', 'db', 'bench', 'test', 'console/src']
  .flatMap((folder) => walk(folder))
  .filter((path) => !path.startsWith('console/src/api/generated/'))
const sources = files
  .filter((path) => /\.(ts|tsx|css)$/.test(path))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
const inside = (...folders: string[]) =>
  sources.filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)))

test('no source file is longer than 300 lines', () => {
  const long = sources
    .filter(({ text }) => text.split('\n').length > linesMax + 1)
    .map(({ path, text }) => `${path}: ${text.split('\n').length} lines; split it by what it does`)
  expect(long).toEqual([])
})

test('no large binary file is committed', () => {
  const large = files.filter((path) => statSync(join(root, path)).size > bytesMax)
  expect(large).toEqual([])
})

test('every adapter folder has the same four files', () => {
  const adapters = readdirSync(join(root, 'src/inference/upstreams'), { withFileTypes: true })
  for (const folder of adapters.filter((entry) => entry.isDirectory())) {
    const roles = readdirSync(join(root, 'src/inference/upstreams', folder.name))
    for (const role of ['wire.ts', 'encode.ts', 'decode.ts', 'adapter.ts']) {
      expect(roles, `src/inference/upstreams/${folder.name} lacks ${role}`).toContain(role)
    }
  }
})

test('only clock.ts reads the clock, and only modules.ts names the global fetch', () => {
  const wrong = inside('src', 'db')
    .filter(({ path }) => path !== 'src/modules.ts' && path !== 'src/clock.ts')
    .filter(({ text }) =>
      /\bnew Date\(\)|\bDate\.now\(\)|(?<![.\w'"`])fetch\(/.test(withoutComments(text)),
    )
    .map(({ path }) => `${path} names the clock or fetch; take them as parameters`)
  expect(wrong).toEqual([])
})

test('only config/load.ts, and a process that computes for the gateway, read the environment', () => {
  const readers = ['src/config/load.ts', 'src/lib/compute-process.ts']
  const wrong = inside('src', 'db')
    .filter(({ path }) => !readers.includes(path))
    .filter(({ text }) => /\bBun\.env\b|\bprocess\.env\b|\bimport\.meta\.env\b/.test(text))
    .map(({ path }) => `${path} reads the environment; add a key to config/schema.ts`)
  expect(wrong).toEqual([])
})

test('only main.ts calls process.exit', () => {
  const wrong = inside('src', 'db')
    .filter(({ path, text }) => path !== 'src/main.ts' && /\bprocess\.exit\(/.test(text))
    .map(({ path }) => `${path} ends the process; throw, and let main.ts decide`)
  expect(wrong).toEqual([])
})

test('file names are specific', () => {
  const vague = files.filter((path) =>
    /(^|\/)(utils?|helpers?|common|misc|manager|shared|types)(\.ts|\/)/.test(path),
  )
  expect(vague).toEqual([])
})

test('no TODO comments', () => {
  const wrong = inside('src', 'db', 'bench', 'console')
    .filter(({ text }) => /\b(TODO|FIXME|XXX|HACK)\b/.test(text))
    .map(({ path }) => `${path} has left-over work; do it or write an issue`)
  expect(wrong).toEqual([])
})

test('the table in CONTRIBUTING.md lists the folders of src', () => {
  const guide = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
  const mapped = [...guide.matchAll(/^\| `src\/([a-z-]+)`/gm)].map((match) => match[1])
  const folders = readdirSync(join(root, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
  expect(mapped.toSorted()).toEqual(folders.toSorted())
})

test('tests have no time limit of their own', () => {
  const limit =
    /\bsetDefaultTimeout\(|^\s*\}, (?:\w*(?:Ms|_000)|\d{5,})\)$|^\s+\},\n\s+(?:\w+Ms|[\w *]+_000),\n\s*\)/m
  const wrong = inside('test')
    .filter(({ path, text }) => path.endsWith('.test.ts') && limit.test(text))
    .map(({ path }) => `${path} has its own time limit; test/support/time-limits.ts is for all`)
  expect(wrong).toEqual([])
})

test('a test that can start a gateway, database or process is not a fast test', () => {
  const fast = listFastTests()
  expect(fast).toContain('test/layers.test.ts')
  expect(fast).not.toContain('test/routes.test.ts')
  expect(fast).not.toContain('test/db/client.test.ts')
  expect(fast).not.toContain('test/process/first-start.test.ts')
})

test('the changelog has an Unreleased section and known headings', () => {
  const text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  expect(text).toContain('\n## Unreleased\n')
  const headings = [...text.matchAll(/^### (.+)$/gm)].map((match) => match[1])
  const known = ['Added', 'Changed', 'Fixed', 'Removed', 'Security', 'Upgrading']
  expect(headings.filter((heading) => !known.includes(heading ?? ''))).toEqual([])
})

function walk(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    return entry.isDirectory() ? walk(path) : [path]
  })
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}
