/**
 * `bun run test:all [path…]`: all tests, or those below the paths, a few processes at a time. The
 * longest files come first, each in a process of its own; the others follow in groups that get
 * smaller, so that all processes end at about the same time. With a server (`DATABASE_URL`) some run
 * a second time on the embedded database. `bun test --parallel` runs files in the order of their
 * names, and its processes slow down after a thousand tests.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { needsEmbeddedDatabase } from '#test/support/embedded-tests.ts'
import { listTests } from '#test/support/fast-tests.ts'
import { longestTests } from '#test/support/longest-tests.ts'

/** Tests mostly wait. */
const processes = 2 * availableParallelism() + 2
/** More make a process slow, fewer cost more starts. */
const groupFiles = { min: 6, max: 40 }
const embeddedGroupFiles = 3

type Group = { readonly files: readonly string[]; readonly isEmbedded: boolean }

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

const embedded =
  process.env['DATABASE_URL'] === undefined ? [] : files.filter(needsEmbeddedDatabase)
const groups: Group[] = [
  ...long.map((file) => ({ files: [file], isEmbedded: false })),
  ...chunk(embedded, () => embeddedGroupFiles).map((each) => ({ files: each, isEmbedded: true })),
  ...chunk(others, sizeOfGroup).map((each) => ({ files: each, isEmbedded: false })),
]
const queue = groups.entries()
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
  for (const [index, { files, isEmbedded }] of queue) {
    const log = join(output, `${index}`)
    const groupStartedMs = performance.now()
    const { DATABASE_URL: _, ...withoutServer } = process.env
    const child = Bun.spawn(
      [process.execPath, 'test', '--no-isolate', ...files.map((file) => `./${file}`)],
      {
        env: isEmbedded ? withoutServer : process.env,
        stdio: ['ignore', Bun.file(log), Bun.file(log)],
      },
    )
    children.add(child)
    const exitCode = await child.exited
    children.delete(child)
    // Whole, so that no lines of others are between.
    process.stdout.write(await Bun.file(log).text())
    const count = files.length === 1 ? String(files[0]) : `${files.length} files`
    const name = isEmbedded ? `${count} on the embedded database` : count
    const cpuS = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6
    console.log(`# ${name}: ${seconds(groupStartedMs)} s, CPU ${cpuS.toFixed(1)} s`)
    const command = `bun test --no-isolate ${files.join(' ')}`
    if (exitCode !== 0) {
      failedGroups.push(isEmbedded ? `env --unset=DATABASE_URL ${command}` : command)
    }
  }
}

/** Groups that get smaller. */
function sizeOfGroup(filesLeft: number): number {
  const share = Math.ceil(filesLeft / (2 * processes))
  return Math.min(groupFiles.max, Math.max(groupFiles.min, share))
}

function chunk(all: readonly string[], sizeOf: (left: number) => number): string[][] {
  const chunks: string[][] = []
  for (let at = 0; at < all.length; at += chunks.at(-1)?.length ?? 0) {
    chunks.push(all.slice(at, at + sizeOf(all.length - at)))
  }
  return chunks
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1000).toFixed(1)
}
