import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const root = join(import.meta.dir, '../..')

/** Packages and modules that give a test a database or a gateway, directly or indirectly. */
const slowImports = new Set(['postgres', 'puppeteer-core', 'src/app.ts', 'src/worker.ts'])
const startsProcess = /\bBun\.spawn|\bnew Worker\(|'node:child_process'/

type Module = { readonly imports: readonly string[]; readonly isSlow: boolean }

/**
 * The test files that need no gateway, database or child process: neither they nor any module that
 * they import, at any depth, can start one. Type imports do not count. Paths from the root.
 */
export function listFastTests(): string[] {
  const transpiler = new Bun.Transpiler({ loader: 'ts' })
  const modules = new Map<string, Module>()

  const read = (file: string): Module => {
    const known = modules.get(file)
    if (known !== undefined) return known
    const text = readFileSync(join(root, file), 'utf8')
    const imports = transpiler.scanImports(text).map(({ path }) => resolve(file, path))
    const isSlow = startsProcess.test(text) || imports.some((path) => slowImports.has(path))
    const read = { imports: imports.filter((path) => path.endsWith('.ts')), isSlow }
    modules.set(file, read)
    return read
  }

  const isFast = (test: string): boolean => {
    const seen = new Set([test])
    for (const file of seen) {
      const { imports, isSlow } = read(file)
      if (isSlow) return false
      for (const path of imports) seen.add(path)
    }
    return true
  }

  return readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path}`)
    .toSorted()
    .filter(isFast)
}

function resolve(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return relative(root, join(root, file, '..', specifier))
  return specifier.startsWith('#') ? relative(root, Bun.resolveSync(specifier, root)) : specifier
}
