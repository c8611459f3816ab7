import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import type { EventBatch } from '#inference/events.ts'
import type { EventBatches } from '#inference/inference.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { Log } from '#telemetry/log.ts'
import { createResponseAccess } from './access.ts'
import { createBackgroundQueue } from './background-queue.ts'
import { type StreamRendering, workerLost } from './ending.ts'
import { EventLog } from './event-log.ts'
import { createJournal } from './journal.ts'
import { noFrames } from './journal-entry.ts'
import { startRecovery } from './recovery.ts'
import { createRemoteLogReader } from './remote-log-reader.ts'
import type { ResponseObject } from './response.ts'
import { LocalRun } from './run.ts'
import type { ResponseStore } from './store.ts'
import type { QueuedResponse, ResponseHead } from './stored.ts'
import { createUnstored } from './unstored.ts'

export type ResponseRuns = Awaited<ReturnType<typeof createResponseRuns>>

/** Messages between workers about responses. Delivery is best effort; the database is the truth. */
export type ResponseMessage =
  | { readonly what: 'cancel' | 'deleted'; readonly id: string }
  | { readonly what: 'unstored'; readonly id: string; readonly ownerId: string }

export type RunPlan = {
  readonly head: ResponseHead
  readonly renderer: FrameRenderer
  generate(signal: AbortSignal): EventBatches
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
  /** Names this process, as the database's connections do. */
  runnerId: string
  bus: Pick<Database, 'listen' | 'notify'>
  jobs: Pick<Jobs, 'add' | 'process'>
  /** No other process uses the database: responses in progress at the start are orphans. */
  soleProcess: boolean
  settings: Config['responses']
  /** Interval of heartbeat frames in a silent stream. */
  heartbeatMs: number
  rendering: StreamRendering
  log: Log
  now: () => Date
}

const channel = 'responses'

/**
 * Runs stored responses. A run is independent of connections: it writes its frames to a log that
 * any number of clients read, on any worker, while it runs and after it has ended. Ends orphans
 * first if this is the only process.
 */
export async function createResponseRuns(deps: RunsDeps) {
  const { store, runnerId, settings, log, rendering } = deps
  const charsMax = settings.logBufferCharsMax
  const { renderTerminalFrames } = rendering
  const { flushMs, storeWaitMs: outageMaxMs } = settings
  const streaming = { store, renderTerminalFrames, charsMax, outageMaxMs }
  const journal = createJournal({ store, flushMs, outageMaxMs, log })
  const remoteLogs = createRemoteLogReader({ store, rendering, charsMax, outageMaxMs, log })
  const runs = new Map<string, LocalRun>()
  const unstored = createUnstored()

  function start(plan: RunPlan, eventLog: EventLog, wasQueued: boolean): LocalRun {
    const run = new LocalRun(
      plan,
      { log: eventLog, wasQueued },
      {
        ...deps,
        journal,
        runnerId,
        streaming,
        onUnstored: unstored.addOwn,
        onEnded: ({ id }) => runs.delete(id),
      },
    )
    runs.set(run.id, run)
    run.begin()
    return run
  }
  /** Continues the log of the queued response. */
  function startQueued(queued: QueuedResponse, plan: RunPlan): LocalRun {
    const { last } = queued.segment
    const eventLog = remoteLogs.takeOver(queued.id, last) ?? new EventLog({ last, charsMax })
    return start(plan, eventLog, true)
  }
  function onMessage(message: ResponseMessage): void {
    const { what, id } = message
    const run = runs.get(id)
    if (what === 'unstored') unstored.add(message)
    else if (what === 'deleted') void run?.discard(null)
    else void run?.cancel().catch(() => {})
  }

  const queue = createBackgroundQueue({
    ...deps,
    renderTerminalFrames,
    runnerId,
    start: startQueued,
  })
  const recovery = await startRecovery({
    ...deps,
    runnerId,
    localIds: () => [...runs.keys(), ...queue.starting()],
    storedIds: () => [...runs.values()].filter((run) => run.isStored()).map(({ id }) => id),
    unstored,
    announce: async (message) => deps.bus.notify(channel, JSON.stringify(message)),
    onEndedInDatabase(id, how) {
      const wasRequested = how === 'deleted' || how === 'cancelled'
      void runs.get(id)?.discard(wasRequested ? null : workerLost())
    },
  })
  await deps.bus.listen(channel, {
    onMessage(payload) {
      const message = parseMessage(payload)
      if (message !== null) onMessage(message)
    },
    // Recovery finds in the database what was missed.
    onGap() {},
  })
  const access = createResponseAccess({
    store,
    rendering,
    unstored,
    findRun: (id) => runs.get(id),
    remoteLogs,
    streaming,
    publish(message) {
      onMessage(message)
      deps.bus.notify(channel, JSON.stringify(message)).catch((error: unknown) => {
        log.warn('response notification failed', { error })
      })
    },
  })
  return {
    ...access,
    /**
     * Starts a run on this worker. A failure before its first frame leaves no trace. A client that knows
     * its id finds it, also if this process dies at once: frames wait for the row.
     */
    start: (plan: RunPlan) =>
      start(plan, new EventLog({ last: -1, charsMax, isHeld: true }), false),
    /** Stores a response that has ended and has no stream; false if the database is unavailable. */
    async storeEnded(head: ResponseHead, object: ResponseObject): Promise<boolean> {
      const { id, ownerId, conversationId } = head
      const opened = { ...head, runnerId, object }
      const entry = journal.open({ id, ownerId, conversationId, opened, frames: noFrames })
      const isStored = (await entry.end({ object, segment: null })) === 'stored'
      if (!isStored) unstored.addOwn({ id, ownerId })
      return isStored
    },
    enqueue: queue.enqueue,
    processQueue: queue.process,
    running: () => runs.size + queue.starting().length,
    /** Starts no more background responses. */
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

function parseMessage(payload: string): ResponseMessage | null {
  const message = parseJson(payload)
  if (!isRecord(message)) return null
  const { what, id, ownerId } = message
  if (typeof id !== 'string') return null
  if (what === 'cancel' || what === 'deleted') return { what, id }
  if (what === 'unstored' && typeof ownerId === 'string') return { what, id, ownerId }
  return null
}
