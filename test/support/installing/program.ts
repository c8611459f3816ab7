import { appendFileSync } from 'node:fs'
import { loadConfig } from '#config/load.ts'
import { openDatabase } from '#db/client.ts'
import { setRequestWait } from '#db/query-runner.ts'
import { createInstaller } from '#installer/create-installer.ts'
import { createSources } from '#installer/sources/source.ts'
import { createTransfer } from '#installer/transfer/transfer.ts'
import { createJobs } from '#jobs/jobs.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'
import { fetchTransport } from '#test/support/transport.ts'
import type { ProcessTask } from './install-process.ts'

/**
 * A process that installs a model: it starts a download, or resumes the one of another process, and
 * prints its state whenever it changes.
 */
const task: ProcessTask = JSON.parse(process.argv[2] ?? '')
const now = () => new Date()
const settings = { ...loadConfig({}).installer, ...task.settings }
// A busy machine is no database outage.
setRequestWait(helperTimeoutMs)
const database = await openDatabase({ ...task.place, connectionsMax: 2, log: quietLog })
const jobs = await createJobs({ database, log: quietLog, timings: { leaseMs: 600, pollMs: 40 } })
const outside = { fetch, resolve: resolveHost }
const { downloads } = await createInstaller({
  settings,
  folder: task.folder,
  database,
  jobs,
  now,
  log: quietLog,
  heartbeatMs: 100,
  resolve: createSources(settings, outside),
  transferFile: createTransfer(settings, outside),
  transport: fetchTransport,
  findUpstream: () => undefined,
  uses: async () => [],
  runtimes: { list: () => [], install: async () => {} },
  refreshModels() {},
})

const signal = new AbortController().signal
const principal = { userId: crypto.randomUUID(), groups: [] }
const begin = async () => {
  const started = await downloads.start(principal, task.request, signal)
  if (started.kind === 'installed') throw new Error('it is installed')
  return started.download.id
}
const id = task.downloadId ?? (await begin())
if (task.isResumed === true) await downloads.act(principal, id, 'resume')
const news = await downloads.follow(id, 0, signal)
for (let next = await news.next(); !next.done; next = await news.next()) {
  const { download, lines } = next.value
  appendFileSync(1, `${JSON.stringify({ ...download, lines })}\n`)
}
await jobs.close()
await database.close()
