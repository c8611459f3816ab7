import type { EventBatch } from '#inference/events.ts'
import type { AppError } from '#lib/errors.ts'
import type { ResponseObject } from './response.ts'
import type { QueuedResponse, ResponseHead } from './store.ts'

/**
 * Stored responses at work. A run belongs to no connection: it writes its frames to a log, from
 * which any number of watchers read, here and in other processes, while it runs and after.
 */
export type ResponseRuns = {
  /** Runs in this process from now on. A failure before there is anything to show leaves no trace. */
  start(job: RunJob): Run
  /** Takes background work; throws `rate_limit_exceeded`, `service_unavailable`. */
  enqueue(response: QueuedResponse): Promise<void>
  /** How work from the queue becomes a job, wherever it was accepted; begins to take such work. */
  serveQueue(prepare: (queued: QueuedResponse) => Promise<RunJob>): void
  /** The frames behind `startingAfter`, then what follows, until the end; undefined: no such response. */
  watch(ownerId: string, id: string, startingAfter: number): Promise<Frames | undefined>
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

/** SSE frames without the closing `[DONE]`; whole frames, as many at a time as there are. */
export type Frames = AsyncGenerator<string, void, void>

export type RunJob = {
  readonly head: ResponseHead
  readonly renderer: RunRenderer
  /** `committed` tells whether a watcher may have seen a frame, so that nothing is tried again. */
  generate(control: {
    signal: AbortSignal
    committed: () => boolean
  }): AsyncGenerator<EventBatch, void, void>
}

export type Run = {
  readonly id: string
  /** The frames from the first one. Throws where the run fails before there is anything to show. */
  frames(): Frames
  /** The object when it is over; rejects where the run failed before there was anything to show. */
  ended(): Promise<{ object: ResponseObject; error: AppError | null }>
  /** Counts as a reader until it is let go of: a run in the foreground ends soon after the last. */
  hold(): () => void
}

/** What turns events into frames; the surface makes one for each run. */
export type RunRenderer = {
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
