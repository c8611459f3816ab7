import { parseArgs } from 'node:util'
import { useTemporaryFolders } from '#test/support/temporary-folders.ts'

useTemporaryFolders()
const { describeViolations, summarise } = await import('./record.ts')
const { simulate } = await import('./simulation.ts')
const { stopProcesses } = await import('#test/support/process.ts')

const usage = `
Usage: bun run simulate [--seed N] [--operations N] [--minutes M]

Runs two replicas on a PostgreSQL server of its own under a mixed load while workers, the database,
upstreams and the disk fail, and checks afterwards that nothing acknowledged was lost and nothing is
left over. The seed reproduces the schedule; with --minutes, further seeds follow until the time is
over. The exit code is 1 after a violation.`

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    operations: { type: 'string', default: '600' },
    minutes: { type: 'string', default: '0' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(usage.trim())
  process.exit(0)
}
const endsMs = performance.now() + Number(values.minutes) * 60_000
let isClean = true
for (let seed = Number(values.seed); ; seed++) {
  console.log(`seed ${seed}`)
  const startedMs = performance.now()
  const book = await simulate({ seed, operations: Number(values.operations), print: console.log })
  await stopProcesses()
  if (book === null) {
    console.log('skipped: no PostgreSQL with pgvector is installed')
    break
  }
  console.log(summarise(book))
  const seconds = Math.round((performance.now() - startedMs) / 1_000)
  if (book.violations.length > 0) {
    isClean = false
    console.log(`seed ${seed} after ${seconds} s: ${book.violations.length} violations`)
    console.log(describeViolations(book))
  } else {
    console.log(`seed ${seed} after ${seconds} s: no violation`)
  }
  if (performance.now() > endsMs) break
}
process.exit(isClean ? 0 : 1)
