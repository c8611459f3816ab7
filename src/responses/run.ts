import type { Config } from '#config/schema.ts'
import type { EventBatch } from '#inference/events.ts'
import type { EventBatches } from '#inference/inference.ts'
import { assert } from '#lib/assert.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { pull, type Subscriber } from '#lib/pull-iterator.ts'
import type { Log } from '#telemetry/log.ts'
import type { EventLog } from './event-log.ts'
import { type FrameRange, type FrameStreamDeps, type Frames, streamFrames } from './frame-stream.ts'
import type { Journal, JournalEntry } from './journal.ts'
import { replaceEnd } from './log-segment.ts'
import { ReaderCount } from './reader-count.ts'
import type { ResponseObject } from './response.ts'
import type { RunPlan } from './runs.ts'
import type { LogSegment } from './stored.ts'

type LocalRunDeps = {
  journal: Journal
  runnerId: string
  settings: Config['responses']
  heartbeatMs: number
  streaming: FrameStreamDeps
  log: Log
  /** Its end could not be stored. */
  onUnstored(run: LocalRun): void
  /** Called once. */
  onEnded(run: LocalRun): void
}

/**
 * A response that runs on this worker: pulls event batches as fast as they arrive, renders them and
 * logs the frames. It ends once: by its terminal event, a failure or a cancellation. Later events
 * are ignored.
 */
export class LocalRun implements Subscriber<EventBatch> {
  readonly id: string
  readonly ownerId: string
  readonly #plan: RunPlan
  readonly #renderer: RunPlan['renderer']
  readonly #log: EventLog
  #batches: EventBatches | null = null
  readonly #deps: LocalRunDeps
  readonly #controller = new AbortController()
  /** Not rejected: often nobody waits for it. */
  readonly #settled = Promise.withResolvers<ResponseObject | AppError>()
  /** A queued response is in the database, and its client knows its id. */
  readonly #wasQueued: boolean
  /** `pending`: no frame was logged. `ended`: the terminal frames may wait until they are stored. */
  #phase: 'pending' | 'streaming' | 'ended' = 'pending'
  #entry: JournalEntry | null = null
  readonly #readers = new ReaderCount(() => this.#abandon())
  #lastFrameAt = performance.now()
  #heartbeatTimer: ReturnType<typeof setTimeout> | undefined

  constructor(plan: RunPlan, source: { log: EventLog; wasQueued: boolean }, deps: LocalRunDeps) {
    this.id = plan.head.id
    this.ownerId = plan.head.ownerId
    this.#plan = plan
    this.#renderer = plan.renderer
    this.#log = source.log
    this.#wasQueued = source.wasQueued
    this.#deps = deps
  }

  /** Called once. */
  begin(): void {
    this.#startHeartbeat(this.#deps.heartbeatMs)
    if (!this.#plan.head.background) this.#readers.expectWithin(this.#deps.settings.abandonMs)
    this.#generate()
  }

  /** All frames. Throws if the run fails before its first frame. */
  frames(signal: AbortSignal): Frames {
    return this.watch({ startingAfter: -1, signal })
  }

  watch(range: FrameRange): Frames {
    const source = { id: this.id, log: this.#log }
    const onDetach = this.#readers.retain(() => this.#abandonMs())
    return streamFrames(source, range, { ...this.#deps.streaming, onDetach })
  }

  /** The final object; rejects if the run failed before its first frame. */
  async ended(): Promise<ResponseObject> {
    const settled = await this.#settled.promise
    if (settled instanceof AppError) throw settled
    return settled
  }

  /** Whether the database holds this response as in progress. */
  isStored(): boolean {
    return this.#isRunning() && this.#entry?.isStored() === true
  }

  /** The current object; after the end, the stored one. */
  async current(): Promise<ResponseObject> {
    return this.#isRunning() ? this.#renderer.stored() : this.ended()
  }

  async cancel(): Promise<ResponseObject> {
    if (this.#isRunning()) {
      void this.#end(() => this.#renderer.cancel())
      this.#controller.abort(new AppError('client_closed', 'The response was cancelled.'))
    }
    return this.ended()
  }

  async fail(error: AppError): Promise<void> {
    if (this.#isRunning()) this.#fail(error)
    await this.ended().catch(() => {})
  }

  /** Ends the run and writes nothing more: the database already holds another end, or no row. */
  async discard(error: AppError | null): Promise<void> {
    if (this.#isRunning()) {
      const render = () => (error === null ? this.#renderer.cancel() : this.#renderer.fail(error))
      void this.#end(render, { isDiscarded: true })
      this.#controller.abort(new AppError('client_closed', 'The response was deleted.'))
    }
    await this.ended().catch(() => {})
  }

  #generate(): void {
    try {
      if (this.#wasQueued) this.#open()
      const { signal } = this.#controller
      const batches = this.#plan.generate(signal)
      // A generator that is suspended at a yield does not see the signal.
      const stop = () => void batches.return().catch(() => {})
      signal.addEventListener('abort', stop, { once: true })
      this.#batches = batches
      this.#readNext()
    } catch (error) {
      this.onError(error)
    }
  }

  #readNext(): void {
    if (this.#batches !== null) pull(this.#batches, this)
  }

  onNext(batch: EventBatch): void {
    if (!this.#isRunning()) return
    try {
      this.#append(batch)
    } catch (error) {
      this.onError(error)
      return
    }
    // Also after the last batch, so that the generation records its usage.
    if (this.#log.isFull()) void this.#log.space().then(() => this.#readNext())
    else this.#readNext()
  }

  onError(error: unknown): void {
    if (this.#isRunning()) this.#fail(toAppError(error))
  }

  onComplete(): void {
    this.onError(new AppError('upstream_truncated', 'The upstream response ended prematurely.'))
  }

  #isRunning(): boolean {
    return this.#phase === 'pending' || this.#phase === 'streaming'
  }

  #append(batch: EventBatch): void {
    const last = batch.at(-1)
    const isLast = last?.type === 'finish' || last?.type === 'error'
    if (this.#phase === 'pending') this.#open()
    this.#logFrames(this.#renderer.push(isLast ? batch.slice(0, -1) : batch))
    if (!isLast) return
    void this.#end(() => this.#renderer.push([last]))
  }

  #open(): void {
    const { head, renderer } = this.#plan
    const { journal, runnerId } = this.#deps
    this.#phase = 'streaming'
    const frames = renderer.open()
    const { id, ownerId, conversationId } = head
    this.#entry = journal.open({
      id,
      ownerId,
      conversationId,
      opened: this.#wasQueued ? null : { ...head, runnerId, object: renderer.stored() },
      frames: this.#log,
      onWritten: (last) => this.#log.persistedUpTo(last),
      onFailed: () => this.#log.keepForReaders(),
    })
    this.#logFrames(frames)
    this.#entry.openSoon()
  }

  #logFrames(frames: string): void {
    if (frames === '') return
    const segment = this.#segmentOf(frames)
    this.#lastFrameAt = performance.now()
    const isScheduled = this.#log.untakenChars > 0
    this.#log.append(segment)
    if (!isScheduled || this.#log.isUrgent) this.#entry?.writeSoon()
  }

  #segmentOf(frames: string): LogSegment {
    const first = this.#log.last + 1
    const last = this.#renderer.nextSequence() - 1
    assert(last >= first, 'each frame has a sequence number')
    return { first, last, frames }
  }

  #startHeartbeat(ms: number): void {
    this.#heartbeatTimer = setTimeout(() => this.#heartbeat(), ms)
    this.#heartbeatTimer.unref()
  }

  /** A pending response opens for its readers. */
  #heartbeat(): void {
    const { heartbeatMs } = this.#deps
    const remainingMs = this.#lastFrameAt + heartbeatMs - performance.now()
    if (remainingMs > 0) {
      this.#startHeartbeat(remainingMs)
      return
    }
    try {
      if (this.#phase === 'pending') this.#open()
      else if (this.#phase === 'streaming' && !this.#log.isFull()) {
        this.#logFrames(this.#renderer.heartbeat())
      }
    } catch (error) {
      this.#fail(toAppError(error))
    }
    if (this.#isRunning()) this.#startHeartbeat(heartbeatMs)
  }

  /** A client can only resume a response whose id was sent. */
  #abandonMs(): number | null {
    if (this.#plan.head.background || !this.#isRunning()) return null
    return this.#log.isHeld ? 0 : this.#deps.settings.abandonMs
  }

  #abandon(): void {
    if (this.#phase === 'pending') {
      this.#fail(new AppError('client_closed', 'The response has no readers.'))
    } else void this.cancel().catch(() => {})
  }

  #fail(error: AppError): void {
    if (this.#phase === 'pending') this.#failWithoutFrames(error)
    else void this.#end(() => this.#renderer.fail(error))
    this.#controller.abort(error)
  }

  async #end(
    render: () => string,
    { isDiscarded = false }: { isDiscarded?: boolean } = {},
  ): Promise<void> {
    try {
      if (this.#phase === 'pending') this.#open()
      this.#phase = 'ended'
      this.#stopTimers()
      let segment = this.#segmentOf(render())
      const outcome = await this.#writeEnd(segment, isDiscarded)
      if (outcome === 'unstored') this.#deps.onUnstored(this)
      if (outcome === 'unstored' || outcome === 'refused') {
        const frames = this.#renderer.unstored()
        segment = replaceEnd(segment, frames, this.#renderer.nextSequence() - 1)
      }
      this.#log.append(segment)
      if (outcome === 'stored') this.#log.persistedUpTo(segment.last)
      this.#log.end({ kind: 'complete' })
      this.#settled.resolve(this.#renderer.stored())
      this.#deps.onEnded(this)
    } catch (fault) {
      this.#deps.log.error('failed to end a response', { response_id: this.id, error: fault })
      this.#failWithoutFrames(toAppError(fault))
    }
  }

  async #writeEnd(segment: LogSegment, isDiscarded: boolean) {
    const entry = this.#entry
    assert(entry, 'an opened response has a journal entry')
    if (!isDiscarded) return entry.end({ object: this.#renderer.stored(), segment })
    await entry.discard()
    return 'discarded' as const
  }

  #failWithoutFrames(error: AppError): void {
    this.#phase = 'ended'
    this.#stopTimers()
    this.#log.end({ kind: 'failed', error })
    this.#settled.resolve(error)
    void this.#entry?.discard()
    this.#deps.onEnded(this)
  }

  #stopTimers(): void {
    clearTimeout(this.#heartbeatTimer)
    this.#readers.stop()
  }
}
