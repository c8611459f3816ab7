/**
 * `bun run mutate src/auth --sample 100 --seed 2`: changes sources in small ways, in a temporary copy
 * of the project, and lists the changes that no test notices. `--only 'jwks.ts:92'` repeats some.
 *
 * Stryker has no runner for Bun's tests, and its command runner runs all tests for every mutant. Here
 * a mutant meets the test files that execute its line, those closest to its file first. Those that the
 * closest do not notice are type-checked, because `bun run check` does so too.
 *
 * The load of the machine does not change the score: a failure counts only if the same tests pass
 * without the mutant right afterwards, and a time limit only if they are not slow without it either.
 */
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import ts from 'typescript-api'
import { closestTests, listTests } from '#test/support/fast-tests.ts'
import { listMutants, type Mutant } from './mutants.ts'

/**
 * A run may take this many times as long as the same tests without a mutant, and the grace. Short,
 * since mutants that hang are many and a run that is late is checked.
 */
const slowdownMax = 3
const graceMs = 15_000
/** For test files without a mutant. */
const cleanMs = 600_000
/** Tests without a mutant that fail so often are left out. */
const cleanAttempts = 2
/**
 * A run that is late counts if the same tests take at most this part of its time without the mutant.
 * Otherwise it is repeated with a longer limit, as the machine has become slower.
 */
const inTimePart = 0.5
const mutantAttempts = 3
/** How Bun names the file of the results that follow. */
const fileHeading = /^(test\/\S+\.test\.ts):$/gm
/** Most mutants fail the closest tests, so few meet the others. */
const batchFiles = [3, 6, Number.POSITIVE_INFINITY]

const { values: options, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    root: { type: 'string', default: join(import.meta.dir, '..') },
    sample: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    /** Test files for each mutant. */
    files: { type: 'string', default: '30' },
    /** Mutants at a time, each in a copy of its own. */
    jobs: { type: 'string', default: '2' },
    /** Only mutants whose line of output has one of these texts. */
    only: { type: 'string', multiple: true, default: [] },
    /** The score in per cent below which the command fails. */
    min: { type: 'string', default: '0' },
  },
})
const root = resolve(options.root)
const tests = listTests(root)
const fastFiles = new Set(tests.flatMap(({ file, isFast }) => (isFast ? file : [])))
/** Those that start the gateway as a process. */
const startingFiles = new Set(
  tests.flatMap(({ file, distances }) => (distances.has('src/main.ts') ? file : [])),
)
/** No database is prepared. */
const fast = { SLUICE_TEST_FAST: '1' }
const copies = fs.mkdtempSync(join(tmpdir(), 'sluice-mutants-'))
const running = new Set<Bun.Subprocess>()
process.on('exit', () => fs.rmSync(copies, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    report()
    end(130)
  })
}

const outside = new Set(['.git', 'data', 'node_modules'])
const trees = Array.from({ length: Number(options.jobs) }, (_, index) => copyTo(`${index}`))
/** The project may be edited meanwhile. */
const original = copyTo('original')
const mutants = sample(paths.flatMap(sourceFiles).flatMap((file) => listMutants(file, read(file))))
const clean = new Map<string, Promise<Clean | null>>()

/** What a test file does without a mutant. */
type Clean = {
  readonly durationMs: number
  /** The lines that it never executes, of each file that it loads. */
  readonly unexecuted: ReadonlyMap<string, ReadonlySet<number>>
}

const outcomes = { 'failing test': 0, 'time limit': 0, compiler: 0, survived: 0 }
/** Created for the first mutant that needs it. */
let hasTypeError: ReturnType<typeof createTypeChecker> | undefined
const queue = mutants.values()
await Promise.all(trees.map(work))
end(report() < Number(options.min) ? 1 : 0)

/** The score in per cent; of an interrupted run, that of the mutants tried so far. */
function report(): number {
  const tried = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
  const score = 100 * (1 - outcomes.survived / Math.max(1, tried))
  console.log(`${paths.join(' ')}: ${tried} of ${mutants.length} mutants, seed ${options.seed}:`)
  console.log(outcomes)
  console.log(`score ${score.toFixed(1)} %`)
  return score
}

async function work(tree: string): Promise<void> {
  for (const mutant of queue) {
    const outcome = await runMutant(mutant, tree)
    outcomes[outcome]++
    if (outcome === 'survived') console.log(describe(mutant))
    else console.error(`${outcome}: ${describe(mutant)}`)
  }
}

async function runMutant(mutant: Mutant, tree: string): Promise<keyof typeof outcomes> {
  let isChecked = false
  const files = closestTests(tests, mutant.file).slice(0, Number(options.files)).values()
  for (const count of batchFiles) {
    let batchMs = 0
    const batch: string[] = []
    for (const test of files) {
      const clean = await measureClean(test, tree)
      if (clean === null || !mayExecute(test, clean, mutant)) continue
      batchMs += clean.durationMs
      if (batch.push(test) === count) break
    }
    if (batch.length === 0) break
    const outcome = await runBatch(mutant, tree, { batch, batchMs })
    if (outcome !== null) return outcome
    if (!isChecked && isRefused(mutant)) return 'compiler'
    isChecked = true
  }
  return !isChecked && isRefused(mutant) ? 'compiler' : 'survived'
}

/** By the compiler. */
function isRefused(mutant: Mutant): boolean {
  hasTypeError ??= createTypeChecker()
  return hasTypeError(mutant.file, mutatedText(mutant))
}

/** What these tests, which need `batchMs` without the mutant, show; null if they do not notice it. */
async function runBatch(
  mutant: Mutant,
  tree: string,
  { batch, batchMs }: { readonly batch: readonly string[]; readonly batchMs: number },
) {
  const { file } = mutant
  let rest = batch
  let limitMs = limitOf(batchMs)
  for (let attempt = 0; attempt < mutantAttempts && rest.length > 0; attempt++) {
    fs.writeFileSync(join(tree, file), mutatedText(mutant))
    const { result, lastFile } = await runTests(rest, tree, limitMs)
    fs.writeFileSync(join(tree, file), read(file))
    if (result === 'passed') return null
    const isLate = result === 'late'
    const isKnown = !isLate && lastFile !== undefined && rest.includes(lastFile)
    const failed = isKnown ? [lastFile] : rest
    const cleanDurationMs = await runClean(failed, tree)
    if (cleanDurationMs === null) rest = rest.filter((test) => !failed.includes(test))
    else if (!isLate) return 'failing test'
    else if (cleanDurationMs <= inTimePart * limitMs) return 'time limit'
    else limitMs = limitOf(cleanDurationMs)
    console.error(`${result} without the mutant too, ${failed.join(' ')}: ${describe(mutant)}`)
  }
  return null
}

function limitOf(cleanDurationMs: number): number {
  return graceMs + cleanDurationMs * slowdownMax
}

/** The lines that child processes execute are unknown. */
function mayExecute(test: string, { unexecuted }: Clean, { file, line }: Mutant): boolean {
  return unexecuted.get(file)?.has(line) === false || startingFiles.has(test)
}

function mutatedText({ file, start, end, replacement }: Mutant): string {
  const text = read(file)
  return text.slice(0, start) + replacement + text.slice(end)
}

/** What a test file does without a mutant; null if it fails. */
function measureClean(file: string, tree: string): Promise<Clean | null> {
  const measure = async () => {
    const folder = fs.mkdtempSync(join(copies, 'lines-'))
    const coverage = ['--coverage', '--coverage-reporter=lcov', `--coverage-dir=${folder}`]
    const durationMs = await runClean([...coverage, file], tree)
    if (durationMs === null) return null
    const report = fs.readFileSync(join(folder, 'lcov.info'), 'utf8')
    return { durationMs, unexecuted: unexecutedLines(report) }
  }
  const result = clean.get(file) ?? measure()
  clean.set(file, result)
  return result
}

/** How long these tests take without a mutant; null if they fail. */
async function runClean(args: readonly string[], tree: string): Promise<number | null> {
  for (let attempt = 0; attempt < cleanAttempts; attempt++) {
    const startedMs = performance.now()
    const { result } = await runTests(args, tree, cleanMs)
    if (result === 'passed') return performance.now() - startedMs
  }
  console.log(`fails without a mutant: ${args.at(-1)}`)
  return null
}

/** Of each file of an LCOV report. */
function unexecutedLines(report: string): Map<string, Set<number>> {
  const files = new Map<string, Set<number>>()
  for (const record of report.split('end_of_record')) {
    const [, path = ''] = /^SF:(.*)$/m.exec(record) ?? []
    const lines = [...record.matchAll(/^DA:(\d+),0$/gm)].map(([, line]) => Number(line))
    files.set(path, new Set(lines))
  }
  return files
}

/** Runs tests until the first failure, whose file is then the last one. */
async function runTests(args: readonly string[], cwd: string, limitMs: number) {
  const isFast = args.every((arg) => arg.startsWith('--') || fastFiles.has(arg))
  // Not a pipe: processes that outlive their test would keep it open.
  const output = `${cwd}.log`
  // Bun writes over the beginning of a file, and leaves the rest.
  fs.rmSync(output, { force: true })
  const child = Bun.spawn([process.execPath, 'test', '--bail', ...args], {
    cwd,
    env: { ...process.env, ...(isFast ? fast : {}) },
    stdio: ['ignore', 'ignore', Bun.file(output)],
    // A process group of its own: tests start processes.
    detached: true,
  })
  running.add(child)
  let isLate = false
  const stop = () => {
    isLate = true
    process.kill(-child.pid, 'SIGKILL')
  }
  const timer = setTimeout(stop, limitMs)
  await child.exited
  clearTimeout(timer)
  running.delete(child)
  const result = isLate ? 'late' : child.exitCode === 0 ? 'passed' : 'failed'
  const headings = [...fs.readFileSync(output, 'utf8').matchAll(fileHeading)]
  return { result, lastFile: headings.at(-1)?.[1] } as const
}

/** Checks one changed file at a time, as the whole project takes a minute for each mutant. */
function createTypeChecker(): (file: string, text: string) => boolean {
  const { config } = ts.readConfigFile(join(original, 'tsconfig.json'), ts.sys.readFile)
  const { options: settings, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, original)
  let changed = { path: '', text: '' }
  let version = 0
  const service = ts.createLanguageService({
    ...ts.sys,
    getCompilationSettings: () => settings,
    getScriptFileNames: () => fileNames,
    getScriptVersion: (path) => (path === changed.path ? `${version}` : ''),
    getScriptSnapshot(path) {
      const text = path === changed.path ? changed.text : ts.sys.readFile(path)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
    getCurrentDirectory: () => original,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
  })
  return (file, text) => {
    changed = { path: join(original, file), text }
    version++
    const errors = service.getSyntacticDiagnostics(changed.path)
    return errors.length > 0 || service.getSemanticDiagnostics(changed.path).length > 0
  }
}

/** A copy of the project. */
function copyTo(name: string): string {
  const tree = join(copies, name)
  fs.cpSync(root, tree, { recursive: true, filter: (path) => !outside.has(relative(root, path)) })
  fs.symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

function end(exitCode: number): never {
  for (const child of running) process.kill(-child.pid, 'SIGKILL')
  process.exit(exitCode)
}

function sourceFiles(path: string): string[] {
  if (path.endsWith('.ts')) return [path]
  const names = fs.readdirSync(join(original, path), { recursive: true, encoding: 'utf8' })
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

function read(file: string): string {
  return fs.readFileSync(join(original, file), 'utf8')
}
