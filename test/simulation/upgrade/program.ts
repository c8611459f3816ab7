import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { useTemporaryFolders } from '#test/support/temporary-folders.ts'

useTemporaryFolders()
const { stopProcesses } = await import('#test/support/process.ts')
const { rollAndRollBack } = await import('./rolling.ts')
const { checkOut, makeNextVersion, thisVersion } = await import('./versions.ts')

const usage = `
Usage: bun run simulate:upgrade [--from REVISION] [--streams N] [--forward]

Replaces two replicas of a previous version by this one under streams, and back again, on one PostgreSQL
server. Without --from, replaces this version by one with a further migration. With --forward, there is no
way back. The exit code is 1 if a request was lost.`

const { values } = parseArgs({
  options: {
    from: { type: 'string' },
    streams: { type: 'string', default: '200' },
    forward: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(usage.trim())
  process.exit(0)
}
const folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'))
const other = join(folder, 'other')
const isPast = values.from !== undefined
const project = isPast ? await checkOut(values.from ?? '', other) : makeNextVersion(other)
const report = await rollAndRollBack({
  previous: isPast ? project : thisVersion,
  next: isPast ? thisVersion : project,
  folder,
  streams: Number(values.streams),
  isForward: values.forward,
  print: console.log,
})
await stopProcesses()
rmSync(folder, { recursive: true, force: true })
if (report === null) {
  console.log('skipped: no PostgreSQL with pgvector is installed')
} else {
  console.log(`${report.completed} streams completed, ${report.lost.length} requests lost`)
  for (const [phase, count] of Object.entries(report.phases)) console.log(`  ${count} in: ${phase}`)
  for (const line of report.lost.slice(0, 20)) console.log(line)
  for (const line of report.warnings) console.log(`warning: ${line}`)
}
process.exit(report !== null && report.lost.length > 0 ? 1 : 0)
