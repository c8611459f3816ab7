import { jitteredBackoffMs } from '#lib/backoff.ts'
import { sleep } from '#lib/deadline.ts'
import { messageOf } from '#lib/error-message.ts'
import { AppError } from '#lib/errors.ts'
import type { TraceContext } from '#lib/trace.ts'
import { runInTrace } from '#lib/trace-scope.ts'
import { type Log, redact } from '#telemetry/log.ts'
import type { Tracer } from '#telemetry/tracing/tracer.ts'
import type { JobHandler, RunningJob } from './jobs.ts'
import type { ClaimedJob, JobStore } from './store.ts'

type Task = {
  readonly queue: string
  readonly handler: JobHandler
  readonly job: ClaimedJob
}

/** `record` writes the outcome; null: another worker holds the lease. */
type Attempt = {
  readonly outcome: AttemptOutcome
  readonly record: (() => Promise<void>) | null
}

type JobRunnerDeps = {
  store: Omit<JobStore, 'add' | 'claim' | 'claimByLane'>
  log: Pick<Log, 'debug' | 'warn' | 'error'>
  /** The queue is no longer processed here: its claimed and failing jobs are released. */
  isStopped(queue: string): boolean
  onEnded(): void
  onAttempted: OnAttempted
  /** Null: jobs have no spans. */
  tracer: Tracer | null
}

/** Called once for each attempt of a job. `released`: the worker stops, or has lost the lease. */
export type OnAttempted = (queue: string, outcome: AttemptOutcome, durationMs: number) => void
type AttemptOutcome = 'completed' | 'retried' | 'failed' | 'released'

/** Interval of the attempts to record an outcome while the database is unavailable. */
const recordRetryMs = 1_000
const errorCharsMax = 1_000
/** Backoff after the first failure; doubles with each attempt. */
const backoffMinMs = 1_000
const backoffMaxMs = 600_000
/** Longer Retry-After values are capped. */
const retryAfterMaxMs = 3_600_000

/** Runs claimed jobs and records their outcome. */
export function createJobRunner(deps: JobRunnerDeps) {
  const { store, log, isStopped, onEnded } = deps
  const tasks = new Map<Task, { controller: AbortController; ended: Promise<void> }>()

  async function run(task: Task, signal: AbortSignal): Promise<void> {
    if (isStopped(task.queue)) return recordUntilDone(() => store.release(task.job), signal)
    const startedAtMs = performance.now()
    const trace = beginTrace(deps.tracer, task)
    const working = () => attempt(task, { ...task.job, trace, signal })
    const { outcome, record } = await (trace === null ? working() : runInTrace(trace, working))
    trace?.span?.set({ 'sluice.outcome': outcome })
    trace?.span?.end()
    deps.onAttempted(task.queue, outcome, performance.now() - startedAtMs)
    if (record !== null) await recordUntilDone(record, signal)
  }

  async function attempt(task: Task, running: RunningJob): Promise<Attempt> {
    const { queue, handler, job } = task
    const finish = () => store.finish(job)
    try {
      if (job.attempt <= handler.attemptsMax) {
        await handler.run(running)
        return { outcome: 'completed', record: finish }
      }
      await fail(task, running, everyAttemptDied(job))
      return { outcome: 'failed', record: finish }
    } catch (error) {
      noteFailure(running.trace, error)
      if (isStopped(queue)) return { outcome: 'released', record: () => store.release(job) }
      if (running.signal.aborted) return { outcome: 'released', record: null }
      return afterFailure(task, running, error)
    }
  }

  async function afterFailure(task: Task, running: RunningJob, error: unknown): Promise<Attempt> {
    const { queue, handler, job } = task
    const retry: Attempt = {
      outcome: 'retried',
      record: () =>
        store.retryLater(job, {
          backoffMs: backoffMs(error, job.attempt),
          error: errorText(error),
        }),
    }
    if (job.attempt < handler.attemptsMax) {
      log.warn('job failed, retrying', { queue, attempt: job.attempt, error })
      return retry
    }
    if (job.attempt > handler.attemptsMax) return retry
    try {
      await fail(task, running, error)
      return { outcome: 'failed', record: () => store.finish(job) }
    } catch (failure) {
      log.error('job failure handler failed', { queue, error: failure })
      return retry
    }
  }

  async function fail({ queue, handler }: Task, job: RunningJob, error: unknown) {
    await handler.onFailed(job, error)
    const { attempt, payload } = job
    log.error('job failed permanently', { queue, attempt, payload, error })
  }

  /** Retries until the outcome is recorded, the lease is lost or the worker stops. */
  async function recordUntilDone(record: () => Promise<void>, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await record()
      } catch (error) {
        log.debug('failed to record job completion, retrying', { error })
        if (signal.aborted) return
        await sleep(recordRetryMs, signal).catch(() => {})
      }
    }
  }

  return {
    /** The lanes of the running jobs of a queue, each once per job. */
    runningLanes: (queue: string): readonly string[] =>
      [...tasks.keys()].flatMap((task) => (task.queue === queue ? [task.job.lane] : [])),
    start(task: Task): void {
      const controller = new AbortController()
      const ended = run(task, controller.signal).finally(() => {
        tasks.delete(task)
        onEnded()
      })
      tasks.set(task, { controller, ended })
    },
    /** Renews the leases of all running jobs; aborts those that another worker has claimed. */
    async renewLeases(leaseMs: number): Promise<void> {
      const held = [...tasks.keys()]
      if (held.length === 0) return
      const leases = held.map(({ job: { id, claim } }) => ({ id, claim }))
      const renewed = await store.renew(leases, leaseMs)
      const isRenewed = ({ job }: Task) =>
        renewed.some(({ id, claim }) => id === job.id && claim === job.claim)
      for (const task of held.filter((one) => !isRenewed(one))) {
        tasks.get(task)?.controller.abort(new Error('another worker holds the lease of this job'))
      }
    },
    abortAll(): void {
      const reason = new Error('the worker is stopping')
      for (const { controller } of tasks.values()) controller.abort(reason)
    },
    /** Resolves when no job runs. */
    async ended(): Promise<void> {
      await Promise.all([...tasks.values()].map(({ ended }) => ended))
    },
  }
}

/** Each attempt is a span under the request that added the job. */
function beginTrace(tracer: Tracer | null, { queue, job }: Task): TraceContext | null {
  if (tracer === null) return job.trace
  return tracer.begin(job.trace, `job ${queue}`, () => ({
    kind: 'consumer',
    attributes: {
      'messaging.operation.type': 'process',
      'messaging.destination.name': queue,
      'messaging.message.id': job.id,
      'sluice.job.attempt': job.attempt,
    },
  }))
}

function noteFailure(trace: TraceContext | null, error: unknown): void {
  const kind = error instanceof AppError ? error.kind : 'internal_error'
  trace?.span?.fail(kind, errorText(error))
}

/**
 * Exponential backoff with jitter after attempt number `attempt`, and at least the Retry-After of the
 * error.
 */
function backoffMs(error: unknown, attempt: number): number {
  const jitteredMs = jitteredBackoffMs(attempt, { firstMs: backoffMinMs, maxMs: backoffMaxMs })
  const retryAfterMs = error instanceof AppError ? (error.retryAfterS ?? 0) * 1000 : 0
  return Math.max(jitteredMs, Math.min(retryAfterMs, retryAfterMaxMs))
}

/** The job itself may be what kills its workers. */
function everyAttemptDied({ lastError }: ClaimedJob): Error {
  return new Error(lastError ?? 'every worker that ran this job died')
}

function errorText(error: unknown): string {
  const text = messageOf(error)
  return redact(text).replaceAll('\0', '').slice(0, errorCharsMax)
}
