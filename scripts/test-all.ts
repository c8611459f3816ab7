/**
 * `bun run test:all [path…]`: all tests, or those below the paths, a few processes at a time. The
 * longest files come first, each in a process of its own; the others follow in groups that get
 * smaller, so that all processes end at about the same time. `bun test --parallel` runs files in the
 * order of their names, and its processes slow down after a thousand tests.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { listTests } from '#test/support/fast-tests.ts'
import { longestTests } from '#test/support/longest-tests.ts'

/** Tests mostly wait. */
const processes = 2 * availableParallelism() + 2
/** More make a process slow, fewer cost more starts. */
const groupFiles = { min: 6, max: 40 }

const paths = process.argv.slice(2)
const files = listTests()
  .map(({ file }) => file)
  .filter((file) => paths.length === 0 || paths.some((path) => file.startsWith(path)))
const long = longestTests.filter((file) => files.includes(file))
const isLong = new Set(long)
// Neighbours take equally long, so they are spread.
const others = files
  .filter((file) => !isLong.has(file))
  .toSorted((a, b) => (Bun.hash(a) < Bun.hash(b) ? -1 : 1))

const queue = [...long.map((file) => [file]), ...divide(others)].entries()
const startedMs = performance.now()
const children = new Set<Bun.Subprocess>()
const output = mkdtempSync(join(tmpdir(), 'sluice-test-output-'))
const failedGroups: string[] = []
process.on('exit', () => rmSync(output, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    console.log(`stopped by ${signal}`)
    for (const child of children) child.kill(signal)
    process.exit(130)
  })
}
await Promise.all(Array.from({ length: processes }, work))
console.log(`${files.length} test files in ${seconds(startedMs)} s`)
for (const group of failedGroups) console.log(`failed: ${group}`)
process.exit(failedGroups.length === 0 ? 0 : 1)

async function work(): Promise<void> {
  for (const [index, group] of queue) {
    const log = join(output, `${index}`)
    const groupStartedMs = performance.now()
    const child = Bun.spawn(
      [process.execPath, 'test', '--no-isolate', ...group.map((file) => `./${file}`)],
      { stdio: ['ignore', Bun.file(log), Bun.file(log)] },
    )
    children.add(child)
    const exitCode = await child.exited
    children.delete(child)
    // Whole, so that no lines of others are between.
    process.stdout.write(await Bun.file(log).text())
    const name = group.length === 1 ? String(group[0]) : `${group.length} files`
    const cpuS = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6
    console.log(`# ${name}: ${seconds(groupStartedMs)} s, CPU ${cpuS.toFixed(1)} s`)
    if (exitCode !== 0) failedGroups.push(`bun test --no-isolate ${group.join(' ')}`)
  }
}

/** Groups that get smaller. */
function divide(all: readonly string[]): string[][] {
  const groups: string[][] = []
  for (let at = 0; at < all.length; ) {
    const share = Math.ceil((all.length - at) / (2 * processes))
    const count = Math.min(groupFiles.max, Math.max(groupFiles.min, share))
    groups.push(all.slice(at, at + count))
    at += count
  }
  return groups
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1000).toFixed(1)
}
