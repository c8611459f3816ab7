import type { AppError } from '#lib/errors.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { failingJob } from './failing-job.ts'
import { LocalRun, type RunDeps } from './run.ts'
import type { RunPlan } from './runs.ts'
import type { QueuedResponse } from './stored.ts'
import type { Tails } from './tails.ts'

/** The runs of this process. */
export type LocalRuns = {
  start(job: RunPlan): LocalRun
  /** Goes on where the log of the queued response ends. */
  startQueued(queued: QueuedResponse, job: RunPlan): LocalRun
  failQueued(queued: QueuedResponse, error: AppError): LocalRun
  get(id: string): LocalRun | undefined
  ids(): readonly string[]
  count(): number
  countQueued(): number
  /** Those that the database has as in progress. */
  kept(): readonly string[]
  /** Ends them all by this failure; resolves when they have ended. */
  stopAll(error: AppError): Promise<void>
}

export function createLocalRuns(deps: RunDeps & { tails: Pick<Tails, 'adopt'> }): LocalRuns {
  const runs = new Map<string, LocalRun>()
  const { charsMax, renderTerminalFrames } = deps.following
  let fromQueue = 0

  function begin(job: RunPlan, source: { log: EventLog; isAccepted: boolean }) {
    const run = new LocalRun(job, source, {
      ...deps,
      over(ended) {
        runs.delete(ended.id)
        if (source.isAccepted) fromQueue -= 1
        deps.over(ended)
      },
    })
    runs.set(run.id, run)
    if (source.isAccepted) fromQueue += 1
    run.begin()
    return run
  }
  const startQueued = (queued: QueuedResponse, job: RunPlan) => {
    const { last } = queued.segment
    const log = deps.tails.adopt(queued.id, last) ?? createEventLog({ last, charsMax })
    return begin(job, { log, isAccepted: true })
  }
  return {
    start: (job) => begin(job, { log: createEventLog({ last: -1, charsMax }), isAccepted: false }),
    startQueued,
    failQueued: (queued, error) =>
      startQueued(queued, failingJob(queued, error, renderTerminalFrames)),
    get: (id) => runs.get(id),
    ids: () => [...runs.keys()],
    count: () => runs.size,
    countQueued: () => fromQueue,
    kept: () => [...runs.values()].filter((run) => run.isKept()).map(({ id }) => id),
    async stopAll(error) {
      await Promise.all([...runs.values()].map((run) => run.stop(error)))
    },
  }
}
