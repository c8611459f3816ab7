import type { Config } from '#config/schema.ts'
import type { EventBatch } from '#inference/events.ts'
import type { EventBatches } from '#inference/generate.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { Log } from '#telemetry/log.ts'
import { createAccess } from './access.ts'
import { type Bus, createMessages, type Message } from './elsewhere.ts'
import { createJournal } from './journal.ts'
import { createLocalRuns, type LocalRuns } from './local-runs.ts'
import { workerLost } from './lost.ts'
import { createQueue, type Queue } from './queue.ts'
import { startRecovery } from './recovery.ts'
import type { ResponseObject } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { QueuedResponse, ResponseHead } from './stored.ts'
import { createTails } from './tails.ts'

/**
 * Stored responses at work. A run belongs to no connection: it writes its frames to a log, from
 * which any number of watchers read, here and in other processes, while it runs and after.
 */
export type ResponseRuns = {
  /** Runs in this process from now on. A failure before there is anything to show leaves no trace. */
  start(job: RunPlan): ResponseRun
  /** Takes background work; throws `rate_limit_exceeded`, `service_unavailable`. */
  enqueue(response: QueuedResponse): Promise<void>
  /** How work from the queue becomes a job, wherever it was accepted; begins to take such work. */
  processQueue(prepare: (queued: QueuedResponse) => Promise<RunPlan>): void
  /** The frames behind `startingAfter`, then what follows, until the end; undefined: no such response. */
  watch(
    ownerId: string,
    id: string,
    from: { startingAfter: number; signal: AbortSignal },
  ): Promise<Frames | undefined>
  /** As it stands now, sealed payloads included. */
  find(ownerId: string, id: string): Promise<ResponseObject | undefined>
  /** Ends it wherever it runs, and answers with how it ended; what is over stays as it is. */
  cancel(ownerId: string, id: string): Promise<ResponseObject | undefined>
  /** Ends it wherever it runs and forgets it; says whether there was such a response. */
  remove(ownerId: string, id: string): Promise<boolean>
  running(): number
  /** Takes no more work from the queue. */
  drain(): void
  close(): Promise<void>
}

/**
 * SSE frames without the closing `[DONE]`; whole frames, as many at a time as there are. They end at
 * once when the reader's signal aborts, also in the middle of a silence.
 */
export type Frames = AsyncGenerator<string, void, void>

export type RunPlan = {
  readonly head: ResponseHead
  readonly renderer: FrameRenderer
  /** `committed` tells whether a watcher may have seen a frame, so that nothing is tried again. */
  generate(control: { signal: AbortSignal; committed: () => boolean }): EventBatches
}

export type ResponseRun = {
  readonly id: string
  /** The frames from the first one. Throws where the run fails before there is anything to show. */
  frames(signal: AbortSignal): Frames
  /** The object when it is over; rejects where the run failed before there was anything to show. */
  ended(): Promise<{ object: ResponseObject; error: AppError | null }>
  /** Counts as a reader until it is let go of: a run in the foreground ends soon after the last. */
  retain(): () => void
}

/** What turns events into frames; the surface makes one for each run. */
export type FrameRenderer = {
  /** The frames of a batch; the first call opens the stream. A terminal event is the last one. */
  push(batch: EventBatch): string
  /** The frames that open the stream, if they were not given out yet. */
  open(): string
  /** Frames that say that the stream is alive. */
  heartbeat(): string
  /** The frames that end it by a failure that came without events. */
  fail(error: AppError): string
  /** The frames that end it because somebody wanted it. */
  cancel(): string
  /** The terminal frames once more, saying that the response could not be stored. */
  unstored(): string
  /** The number of the next frame. */
  nextSequence(): number
  /** The object as it stands, with its sealed payloads, to be stored. */
  stored(): ResponseObject
}

export type RunsDeps = {
  store: ResponseStore
  bus: Bus
  /** The database has no other process, so that whatever runs at the start is lost. */
  soleProcess: boolean
  settings: Config['responses']
  /** Silence of a run that is told to those who watch it. */
  heartbeatMs: number
  /** Terminal frames, from this number on, for the object of a response that has none in its log. */
  renderTerminalFrames: (object: ResponseObject, nextSequence: number) => string
  log: Log
  now: () => Date
}

/** How long a write to the database takes at most, in ordinary times. */
const writeMs = 50

/** Ends first what was lost, where it can know that; begins to take work with `serveQueue`. */
export async function createResponseRuns(deps: RunsDeps): Promise<ResponseRuns> {
  const { store, settings, log } = deps
  const runnerId = newId('run_')
  const charsMax = settings.logBufferCharsMax
  const following = { store, renderTerminalFrames: deps.renderTerminalFrames, charsMax }
  const { flushMs, storeWaitMs: patienceMs } = settings
  const journal = createJournal({ store, flushMs, patienceMs, urgentChars: charsMax / 2, log })
  const tails = createTails({ store, charsMax, patienceMs, log })
  const messages = createMessages(deps.bus, log)
  const local = createLocalRuns({
    ...deps,
    runnerId,
    journal,
    following,
    tails,
    over: () => queue.nudge(),
  })
  const queue = createQueue({
    store,
    runnerId,
    settings,
    announce: () => messages.tell({ what: 'queued' }),
    running: local.countQueued,
    start: local.startQueued,
    fail: local.failQueued,
    log,
  })
  const hear = createHearing(local, queue)
  const recovery = await startRecovery({
    ...deps,
    runnerId,
    known: () => [...local.ids(), ...queue.taken()],
    kept: local.kept,
    endedElsewhere(id, how) {
      const isWished = how === 'deleted' || how === 'cancelled'
      void local.get(id)?.forget(isWished ? null : workerLost())
    },
  })
  await messages.listen(hear)
  const access = createAccess({
    store,
    local,
    tails,
    following,
    tell(message) {
      hear(message)
      messages.tell(message)
    },
    lagMs: deps.soleProcess ? 0 : flushMs + writeMs,
  })
  return {
    ...access,
    start: local.start,
    enqueue: queue.enqueue,
    processQueue: queue.serve,
    running: () => local.count() + queue.taken().length,
    drain: queue.drain,
    async close() {
      await queue.close()
      await local.stopAll(new AppError('draining', 'The server is shutting down.'))
      await Promise.all([recovery.close(), tails.close()])
      await journal.close()
    },
  }
}

/** What this process does when it, or another one, is told something. */
function createHearing(local: LocalRuns, queue: Queue): (message: Message) => void {
  return (message) => {
    if (message.what === 'queued') {
      queue.nudge()
      return
    }
    queue.callOff(message.id)
    const run = local.get(message.id)
    if (message.what === 'deleted') void run?.forget(null)
    else void run?.cancel().catch(() => {})
  }
}
