import type { Config } from '#config/schema.ts'
import type { EventBatch } from '#inference/events.ts'
import type { EventBatches } from '#inference/inference.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { Log } from '#telemetry/log.ts'
import { createResponseAccess } from './access.ts'
import { createBackgroundQueue, type PrepareQueued } from './background-queue.ts'
import { workerLost } from './ending.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { createJournal } from './journal.ts'
import { startRecovery } from './recovery.ts'
import { createRemoteLogReader } from './remote-log-reader.ts'
import type { ResponseObject } from './response.ts'
import { createResponseBus, type MessageBus, type ResponseMessage } from './response-bus.ts'
import { LocalRun } from './run.ts'
import type { ResponseStore } from './store.ts'
import type { QueuedResponse, ResponseHead } from './stored.ts'

/**
 * Runs stored responses. A run is independent of connections: it writes its frames to a log that
 * any number of clients read, on any worker, while it runs and after it has ended.
 */
export type ResponseRuns = {
  /** Starts a run on this worker. A failure before its first frame leaves no trace. */
  start(plan: RunPlan): ResponseRun
  /** Accepts a background response; throws `rate_limit_exceeded`, `service_unavailable`. */
  enqueue(response: QueuedResponse): Promise<void>
  /** Starts to run background responses; `prepare` plans one that any worker has accepted. */
  processQueue(prepare: PrepareQueued): void
  /** The frames after `startingAfter` until the end; undefined: no such response. */
  watch(
    ownerId: string,
    id: string,
    range: { startingAfter: number; signal: AbortSignal },
  ): Promise<Frames | undefined>
  /** The current object, with its sealed payloads. */
  find(ownerId: string, id: string): Promise<ResponseObject | undefined>
  /** Cancels the response on whichever worker runs it; a finished one stays unchanged. */
  cancel(ownerId: string, id: string): Promise<ResponseObject | undefined>
  /** Ends the response on whichever worker runs it and deletes it; false: no such response. */
  remove(ownerId: string, id: string): Promise<boolean>
  running(): number
  /** Starts no more background responses. */
  drain(): void
  close(): Promise<void>
}

/**
 * Whole SSE frames, several at a time, without the closing `[DONE]`. Ends at once when the reader's
 * signal aborts.
 */
export type Frames = AsyncGenerator<string, void, void>

export type RunPlan = {
  readonly head: ResponseHead
  readonly renderer: FrameRenderer
  /** `committed`: a client may have seen output, so the generation must not be retried. */
  generate(control: { signal: AbortSignal; committed: () => boolean }): EventBatches
}

export type ResponseRun = {
  readonly id: string
  /** All frames. Throws if the run fails before its first frame. */
  frames(signal: AbortSignal): Frames
  /** The final object; rejects if the run failed before its first frame. */
  ended(): Promise<{ object: ResponseObject; error: AppError | null }>
  /** Counts as a reader until released. A foreground run is cancelled some time after the last one. */
  retain(): () => void
}

/** Renders the events of one run as frames; implemented by the surface. */
export type FrameRenderer = {
  /** The frames of a batch; the first call opens the stream. A terminal event comes last. */
  push(batch: EventBatch): string
  /** The frames that open the stream, unless they were rendered before. */
  open(): string
  heartbeat(): string
  /** Terminal frames for a failure outside the events. */
  fail(error: AppError): string
  /** Terminal frames of a cancelled response. */
  cancel(): string
  /** The terminal frames again, for a response that could not be stored. */
  unstored(): string
  /** The sequence number of the next frame. */
  nextSequence(): number
  /** The current object with its sealed payloads, as it is stored. */
  stored(): ResponseObject
}

export type RunsDeps = {
  store: ResponseStore
  bus: MessageBus
  jobs: Pick<Jobs, 'add' | 'process'>
  /** No other process uses the database: responses in progress at the start are orphans. */
  soleProcess: boolean
  settings: Config['responses']
  /** Interval of heartbeat frames in a silent stream. */
  heartbeatMs: number
  /** Terminal frames, from this number on, of a response whose log has none. */
  renderTerminalFrames: (object: ResponseObject, nextSequence: number) => string
  log: Log
  now: () => Date
}

/** The usual duration of a database write. */
const writeMs = 50

/** Ends orphans first if this is the only process; runs queued responses from `processQueue` on. */
export async function createResponseRuns(deps: RunsDeps): Promise<ResponseRuns> {
  const { store, settings, log, renderTerminalFrames } = deps
  const runnerId = newId('run_')
  const charsMax = settings.logBufferCharsMax
  const streaming = { store, renderTerminalFrames, charsMax }
  const { flushMs, storeWaitMs: outageMaxMs } = settings
  const journal = createJournal({ store, flushMs, outageMaxMs, urgentChars: charsMax / 2, log })
  const remoteLogs = createRemoteLogReader({ store, charsMax, outageMaxMs, log })
  const bus = createResponseBus(deps.bus, log)
  const runs = new Map<string, LocalRun>()

  function start(plan: RunPlan, eventLog: EventLog, wasQueued: boolean): LocalRun {
    const run = new LocalRun(
      plan,
      { log: eventLog, wasQueued },
      { ...deps, journal, runnerId, streaming, onEnded: ({ id }) => runs.delete(id) },
    )
    runs.set(run.id, run)
    run.begin()
    return run
  }
  /** Continues the log of the queued response. */
  function startQueued(queued: QueuedResponse, plan: RunPlan): LocalRun {
    const { last } = queued.segment
    const eventLog = remoteLogs.takeOver(queued.id, last) ?? createEventLog({ last, charsMax })
    return start(plan, eventLog, true)
  }
  function onMessage({ what, id }: ResponseMessage): void {
    const run = runs.get(id)
    if (what === 'deleted') void run?.discard(null)
    else void run?.cancel().catch(() => {})
  }

  const queue = createBackgroundQueue({ ...deps, runnerId, start: startQueued })
  const recovery = await startRecovery({
    ...deps,
    runnerId,
    localIds: () => [...runs.keys(), ...queue.starting()],
    storedIds: () => [...runs.values()].filter((run) => run.isStored()).map(({ id }) => id),
    onEndedInDatabase(id, how) {
      const wasRequested = how === 'deleted' || how === 'cancelled'
      void runs.get(id)?.discard(wasRequested ? null : workerLost())
    },
  })
  await bus.listen(onMessage)
  const access = createResponseAccess({
    store,
    findRun: (id) => runs.get(id),
    remoteLogs,
    streaming,
    publish(message) {
      onMessage(message)
      bus.publish(message)
    },
    lagMs: deps.soleProcess ? 0 : flushMs + writeMs,
  })
  return {
    ...access,
    start: (plan) => start(plan, createEventLog({ last: -1, charsMax }), false),
    enqueue: queue.enqueue,
    processQueue: queue.process,
    running: () => runs.size + queue.starting().length,
    drain: queue.stop,
    async close() {
      await queue.close()
      const error = new AppError('draining', 'The server is shutting down.')
      await Promise.all([...runs.values()].map((run) => run.fail(error)))
      await Promise.all([recovery.close(), remoteLogs.close()])
      await journal.close()
    },
  }
}
