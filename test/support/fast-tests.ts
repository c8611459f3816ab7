import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'

const project = join(import.meta.dir, '../..')

/** Packages and modules that give a test a database or a gateway, directly or indirectly. */
const slowImports = new Set(['postgres', 'puppeteer-core', 'src/app.ts', 'src/worker.ts'])
/** Programs that a test starts by their path. */
const programPath = /'(?:\.\.\/)+(src\/[^']+\.ts)'/g
/** Modules of threads and processes. */
const threadPath = /new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g
const startsProcess = /\bBun\.spawn|\bnew Worker\(|'node:child_process'/

/** Of a word of a file name that says something. */
const wordChars = 5

type Module = { readonly imports: readonly string[]; readonly isSlow: boolean }

export type TestFile = {
  readonly file: string
  /** Modules that it imports, at any depth, and by how many imports they are away. */
  readonly distances: ReadonlyMap<string, number>
  /** Neither it nor a module that it imports can start a gateway, a database or a process. */
  readonly isFast: boolean
}

/** The test files that need no gateway, database or child process. Paths from the root. */
export function listFastTests(): string[] {
  return listTests()
    .filter(({ isFast }) => isFast)
    .map(({ file }) => file)
}

/** All test files. Type imports do not count. Paths from the root. */
export function listTests(root = project): TestFile[] {
  const transpiler = new Bun.Transpiler({ loader: 'ts' })
  const modules = new Map<string, Module>()

  const read = (file: string): Module => {
    const known = modules.get(file)
    if (known !== undefined) return known
    const text = readFileSync(join(root, file), 'utf8')
    const imports = transpiler.scanImports(text).map(({ path }) => resolve(root, file, path))
    for (const [, program = ''] of text.matchAll(programPath)) {
      if (existsSync(join(root, program))) imports.push(program)
    }
    for (const [, path = ''] of text.matchAll(threadPath)) imports.push(resolve(root, file, path))
    const isSlow = startsProcess.test(text) || imports.some((path) => slowImports.has(path))
    const read = { imports: imports.filter((path) => path.endsWith('.ts')), isSlow }
    modules.set(file, read)
    return read
  }

  const walk = (file: string): TestFile => {
    const distances = new Map([[file, 0]])
    let isFast = true
    for (const [path, distance] of distances) {
      const { imports, isSlow } = read(path)
      if (isSlow) isFast = false
      for (const imported of imports) {
        if (!distances.has(imported)) distances.set(imported, distance + 1)
      }
    }
    return { file, distances, isFast }
  }

  return readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path}`)
    .toSorted()
    .map(walk)
}

/**
 * The tests that import a source file: first those in its folder of `test`, then those with a word of
 * its name in their path (`auth/session-cookie.ts` and `test/sessions`), then by imports.
 */
export function closestTests(tests: readonly TestFile[], file: string): string[] {
  const folders = file.replace(/^src/, 'test').replace(/\.ts$/, '').split('/')
  const words = basename(file, '.ts')
    .split('-')
    .filter((word) => word.length >= wordChars)
  const distance = (test: TestFile) => {
    const names = test.file.replace(/\.test\.ts$/, '').split('/')
    const shared = folders.findIndex((name, index) => name !== names[index])
    const unshared = shared === -1 ? 0 : folders.length - shared
    const isNamedAlike = unshared > 1 && words.some((word) => test.file.includes(word))
    return (
      100 * (isNamedAlike ? 1.5 : unshared) +
      10 * (test.distances.get(file) ?? 0) +
      (test.isFast ? 0 : 5)
    )
  }
  return tests
    .filter(({ distances }) => distances.has(file))
    .toSorted((a, b) => distance(a) - distance(b) || a.distances.size - b.distances.size)
    .map(({ file: test }) => test)
}

function resolve(root: string, file: string, specifier: string): string {
  if (specifier.startsWith('.')) return relative(root, join(root, file, '..', specifier))
  return specifier.startsWith('#') ? relative(root, Bun.resolveSync(specifier, root)) : specifier
}
