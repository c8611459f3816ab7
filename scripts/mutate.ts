/**
 * `bun run mutate src/auth --sample 100 --seed 2`: changes sources in small ways, in a temporary copy
 * of the project, and lists the changes that no test notices. `--only 'jwks.ts:92'` repeats some.
 *
 * Stryker has no runner for Bun's tests, and its command runner runs all tests for every mutant. Here
 * a mutant meets the test files that import its file, the closest first. Survivors are compiled,
 * because `bun run check` compiles too.
 */
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { closestTests, listTests } from '#test/support/fast-tests.ts'
import { listMutants, type Mutant } from './mutants.ts'

/** A run may take this many times as long as the same tests without a mutant, and the grace. */
const slowdownMax = 5
const graceMs = 30_000
/** For the compiler, and for a test file without a mutant. */
const cleanMs = 600_000
/** Most mutants fail the closest tests, so few meet the others. */
const firstFiles = 3

const { values: options, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    root: { type: 'string', default: join(import.meta.dir, '..') },
    sample: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    /** Test files for each mutant. */
    files: { type: 'string', default: '12' },
    /** Only mutants whose line of output has one of these texts. */
    only: { type: 'string', multiple: true, default: [] },
    /** The score in per cent below which the command fails. */
    min: { type: 'string', default: '0' },
  },
})
const root = resolve(options.root)
const tests = listTests(root)
const tree = fs.mkdtempSync(join(tmpdir(), 'sluice-mutants-'))
let running: Bun.Subprocess | undefined
process.on('exit', () => fs.rmSync(tree, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => end(130))

const outside = new Set(['.git', 'data', 'node_modules'])
fs.cpSync(root, tree, { recursive: true, filter: (path) => !outside.has(relative(root, path)) })
fs.symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))

const mutants = sample(paths.flatMap(sourceFiles).flatMap((file) => listMutants(file, read(file))))
const clean = new Map<string, number | null>()

const outcomes = { 'failing test': 0, 'time limit': 0, compiler: 0, survived: 0 }
for (const mutant of mutants) {
  const outcome = await runMutant(mutant)
  outcomes[outcome]++
  if (outcome === 'survived') console.log(describe(mutant))
}
const score = 100 * (1 - outcomes.survived / Math.max(1, mutants.length))
console.log(`${paths.join(' ')}: ${mutants.length} mutants, seed ${options.seed}:`, outcomes)
console.log(`score ${score.toFixed(1)} %`)
end(score < Number(options.min) ? 1 : 0)

async function runMutant(mutant: Mutant): Promise<keyof typeof outcomes> {
  const text = read(mutant.file)
  const mutated = text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end)
  const runMutated = async (args: readonly string[], limitMs: number) => {
    fs.writeFileSync(join(tree, mutant.file), mutated)
    const exitCode = await run(args, limitMs)
    fs.writeFileSync(join(tree, mutant.file), text)
    return exitCode
  }
  const files = closestTests(tests, mutant.file).slice(0, Number(options.files))
  for (const batch of [files.slice(0, firstFiles), files.slice(firstFiles)]) {
    let limitMs = graceMs
    const passing: string[] = []
    for (const file of batch) {
      const durationMs = await measureClean(file)
      if (durationMs === null) continue
      limitMs += durationMs * slowdownMax
      passing.push(file)
    }
    if (passing.length === 0) continue
    const exitCode = await runMutated(['test', '--bail', ...passing], limitMs)
    if (exitCode !== 0) return exitCode === null ? 'time limit' : 'failing test'
  }
  return (await runMutated(['x', 'tsc', '-p', '.'], cleanMs)) === 0 ? 'survived' : 'compiler'
}

/** How long a test file takes without a mutant, in ms; null if it fails. */
async function measureClean(file: string): Promise<number | null> {
  const known = clean.get(file)
  if (known !== undefined) return known
  const startedMs = performance.now()
  const passed = (await run(['test', file], cleanMs)) === 0
  const duration = passed ? performance.now() - startedMs : null
  if (!passed) console.log(`${file} fails without a mutant`)
  clean.set(file, duration)
  return duration
}

/** The exit code of `bun` with these arguments, in the copy; null after the time limit. */
async function run(args: readonly string[], limitMs: number): Promise<number | null> {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: tree,
    stdio: ['ignore', 'ignore', 'ignore'],
    // A process group of its own: tests start processes.
    detached: true,
  })
  running = child
  let isLate = false
  const stop = () => {
    isLate = true
    process.kill(-child.pid, 'SIGKILL')
  }
  const timer = setTimeout(stop, limitMs)
  await child.exited
  clearTimeout(timer)
  running = undefined
  return isLate ? null : (child.exitCode ?? 1)
}

function end(exitCode: number): never {
  if (running !== undefined) process.kill(-running.pid, 'SIGKILL')
  process.exit(exitCode)
}

function sourceFiles(path: string): string[] {
  if (path.endsWith('.ts')) return [path]
  const names = fs.readdirSync(join(tree, path), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(path, name))
}

/** Independent of lines elsewhere: the same seed takes the same mutants while their lines stay. */
function sample(all: readonly Mutant[]): Mutant[] {
  const { only } = options
  if (only.length > 0)
    return all.filter((mutant) => only.some((text) => describe(mutant).includes(text)))
  const key = ({ file, change }: Mutant) => Bun.hash(`${options.seed} ${file} ${change}`)
  const keyed = all.map((mutant) => ({ mutant, key: key(mutant) }))
  const sorted = keyed.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return sorted.slice(0, Number(options.sample)).map(({ mutant }) => mutant)
}

function describe({ file, line, change }: Mutant): string {
  return `${file}:${line}: ${change}`
}

/** The copy's: the project may be edited meanwhile. */
function read(file: string): string {
  return fs.readFileSync(join(tree, file), 'utf8')
}
