/** A program: adds two jobs, starts one, and runs it until it is killed. */
import { openDatabase } from '#db/client.ts'
import { setRequestWait } from '#db/query-runner.ts'
import { createJobs } from '#jobs/jobs.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'

const [dataFolder = '', databaseUrl = ''] = Bun.argv.slice(2)
setRequestWait(helperTimeoutMs)
const database = await openDatabase({
  dataFolder,
  databaseUrl: databaseUrl === '' ? undefined : databaseUrl,
  connectionsMax: 2,
  log: quietLog,
})
const jobs = await createJobs({ database, log: quietLog, timings: { leaseMs: 3_600_000 } })
await database.drizzle.transaction(async (transaction) => {
  for (const payload of ['held', 'waiting']) {
    await jobs.add(transaction, { queue: 'q', key: null, payload })
  }
})
jobs.process('q', {
  concurrencyMax: 1,
  attemptsMax: 3,
  onFailed: async () => {},
  run() {
    process.stdout.write('at work\n')
    return new Promise(() => {})
  },
})
