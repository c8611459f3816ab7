import type { Jobs, RunningJob } from '#jobs/jobs.ts'
import { followSignal } from '#lib/deadline.ts'
import { asRecord } from '#lib/json.ts'
import type { Ingest } from '#retrieval/ingest/ingest.ts'
import { type DriveDeps, drive } from './drive.ts'
import { driveQueue, dropSource } from './drop.ts'
import { fileQueue } from './feed.ts'
import { aimOf } from './file-store.ts'
import type { ReindexStatus } from './reindex.ts'
import { readRun } from './store.ts'

/** Few are under way at a time, and each mostly waits. */
const drivenAtOnceMax = 16
/** Only processes that die count: a reindex waits for somebody by itself. */
const driveAttemptsMax = 1_000_000
/** Less than the uploads of the same process have, which come first in a queue of their own. */
const filesAtOnceMax = 2
const fileAttemptsMax = 15
/** A message may get lost. */
const wantedLookMs = 5_000
const unwanted = new Error('the reindex has taken another course')

/** In these a reindex brings files somewhere; in all others its work is laid down. */
const bringing: readonly ReindexStatus[] = ['running', 'completed', 'cancelling', 'reverting']

type FileTask = { readonly reindexId: string; readonly fileId: string; readonly indexId: number }

/** Takes reindexes on, and brings their files, whoever has begun them. */
export function takeUpWork(
  deps: DriveDeps & {
    jobs: Pick<Jobs, 'add' | 'process'>
    ingest: Pick<Ingest, 'bring' | 'giveUp'>
  },
): void {
  const { store, notifier, ingest, jobs } = deps
  jobs.process(driveQueue, {
    concurrencyMax: drivenAtOnceMax,
    attemptsMax: driveAttemptsMax,
    run({ payload, signal }) {
      const { reindexId, task } = asRecord(payload)
      const take = task === 'drop' ? dropSource : drive
      return take(deps, String(reindexId), signal)
    },
    onFailed: async () => {},
  })

  async function isWanted({ reindexId, indexId }: FileTask): Promise<boolean> {
    const run = await store.ask((handle) => readRun(handle, reindexId))
    return run !== undefined && bringing.includes(run.status) && aimOf(run) === indexId
  }

  /** A long file would otherwise hold a place for as long as its model takes. */
  async function abortWhenUnwanted(task: FileTask, work: AbortController, ended: AbortSignal) {
    while (!ended.aborted) {
      await notifier.wait(task.reindexId, wantedLookMs, ended)
      if (ended.aborted) return
      if (!(await isWanted(task).catch(() => true))) return work.abort(unwanted)
    }
  }

  jobs.process(fileQueue, {
    concurrencyMax: filesAtOnceMax,
    attemptsMax: fileAttemptsMax,
    async run(job) {
      const task = readTask(job)
      if (!(await isWanted(task))) return
      const { controller, release } = followSignal(job.signal)
      const ended = new AbortController()
      const watching = abortWhenUnwanted(task, controller, ended.signal)
      try {
        await ingest.bring(task, controller.signal)
      } catch (error) {
        // What is laid down is no failure.
        if (controller.signal.reason !== unwanted) throw error
      } finally {
        ended.abort()
        release()
        await watching
      }
    },
    async onFailed(job, error) {
      const task = readTask(job)
      if (await isWanted(task)) await ingest.giveUp(task, error)
    },
  })
}

function readTask({ payload }: RunningJob): FileTask {
  const { reindexId, fileId, indexId } = asRecord(payload)
  return { reindexId: String(reindexId), fileId: String(fileId), indexId: Number(indexId) }
}
