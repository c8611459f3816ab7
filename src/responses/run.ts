import type { Config } from '#config/schema.ts'
import type { EventBatch } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import type { EventLog } from './event-log.ts'
import { type FollowDeps, type From, follow } from './follow.ts'
import { countHolders, type Holders } from './holders.ts'
import type { Journal, JournalEntry } from './journal.ts'
import { replaceEnd } from './log-segment.ts'
import type { ResponseObject } from './response.ts'
import type { Frames, ResponseRun, RunPlan } from './runs.ts'
import type { LogSegment } from './stored.ts'

export type RunDeps = {
  journal: Pick<Journal, 'enter'>
  runnerId: string
  settings: Pick<Config['responses'], 'abandonMs'>
  heartbeatMs: number
  following: FollowDeps
  log: Pick<Log, 'error'>
  /** Called once. */
  over(run: LocalRun): void
}

type RunEnd = { readonly object: ResponseObject; readonly error: AppError | null }

/**
 * One run: pulls batches as fast as they come, renders them and logs the frames. It ends once, by
 * its last event, by a failure, or because somebody ends it; whatever comes later is not heard.
 */
export class LocalRun implements ResponseRun {
  readonly id: string
  readonly ownerId: string
  readonly #job: RunPlan
  readonly #log: EventLog
  readonly #deps: RunDeps
  readonly #controller = new AbortController()
  readonly #settled = Promise.withResolvers<RunEnd>()
  readonly #holders: Holders | null
  /** From the queue: it is in the database, and it was told to its caller. */
  readonly #isAccepted: boolean
  /** `quiet`: nothing was shown. `ending`: the last frames wait until they are stored. */
  #phase: 'quiet' | 'open' | 'ending' | 'over' = 'quiet'
  #entry: JournalEntry | null = null
  #hasOutput = false
  #wasWatched = false
  #shownAt = performance.now()
  #beatTimer: ReturnType<typeof setTimeout> | undefined

  constructor(job: RunPlan, source: { log: EventLog; isAccepted: boolean }, deps: RunDeps) {
    this.id = job.head.id
    this.ownerId = job.head.ownerId
    this.#job = job
    this.#log = source.log
    this.#isAccepted = source.isAccepted
    this.#deps = deps
    this.#holders = job.head.background
      ? null
      : countHolders({ firstMs: deps.settings.abandonMs, nextMs: () => this.#abandonMs() }, () =>
          this.#abandon(),
        )
    this.#settled.promise.catch(() => {})
  }

  /** Called once. */
  begin(): void {
    this.#beatTimer = this.#beatAfter(this.#deps.heartbeatMs)
    void this.#pump()
  }

  frames(signal: AbortSignal): Frames {
    return this.watch({ startingAfter: -1, signal })
  }

  watch(from: From): Frames {
    this.#wasWatched = true
    const source = { id: this.id, log: this.#log }
    return follow(source, from, { ...this.#deps.following, left: this.retain() })
  }

  ended(): Promise<RunEnd> {
    return this.#settled.promise
  }

  retain(): () => void {
    return this.#holders?.hold() ?? (() => {})
  }

  /** Whether the database should know of it by now, and of no end. */
  isKept(): boolean {
    return this.#isRunning() && this.#entry?.isKnown() === true
  }

  /** As it stands now; of one that has ended only what was stored. */
  async current(): Promise<ResponseObject> {
    return this.#isRunning() ? this.#job.renderer.stored() : (await this.ended()).object
  }

  async cancel(): Promise<ResponseObject> {
    if (this.#isRunning()) {
      void this.#end(() => this.#job.renderer.cancel(), { error: null })
      this.#controller.abort(new AppError('client_closed', 'The response was cancelled.'))
    }
    return (await this.ended()).object
  }

  /** Ends it by a failure. */
  async stop(error: AppError): Promise<void> {
    if (this.#isRunning()) this.#fail(error)
    await this.ended().catch(() => {})
  }

  /** Ends it, and lets nothing more of it into the database, which knows otherwise. */
  async forget(error: AppError | null): Promise<void> {
    const { renderer } = this.#job
    if (this.#isRunning()) {
      const render = () => (error === null ? renderer.cancel() : renderer.fail(error))
      void this.#end(render, { error, isForgotten: true })
      this.#controller.abort(new AppError('client_closed', 'The response is gone.'))
    }
    await this.ended().catch(() => {})
  }

  async #pump(): Promise<void> {
    try {
      if (this.#isAccepted) this.#open()
      const { signal } = this.#controller
      const batches = this.#job.generate({ signal, committed: () => this.#isCommitted() })
      // What nobody pulls is suspended, where an abort alone does not reach it.
      const stop = () => void batches.return().catch(() => {})
      signal.addEventListener('abort', stop, { once: true })
      while (this.#isRunning()) {
        const next = await batches.next()
        if (!this.#isRunning()) return
        if (next.done) throw endedEarly()
        this.#show(next.value)
        if (this.#log.isFull()) await this.#log.room()
      }
      // Lets the generation settle what is its own.
      await batches.next()
    } catch (error) {
      if (this.#isRunning()) this.#fail(toAppError(error))
    }
  }

  #isRunning(): boolean {
    return this.#phase === 'quiet' || this.#phase === 'open'
  }

  /** The frames before the first output of what was accepted say no more than that it was. */
  #isCommitted(): boolean {
    return this.#isAccepted ? this.#hasOutput : this.#phase !== 'quiet'
  }

  #show(batch: EventBatch): void {
    const last = batch.at(-1)
    const isLast = last?.type === 'finish' || last?.type === 'error'
    if (this.#phase === 'quiet') this.#open()
    this.#hasOutput = true
    this.#append(this.#job.renderer.push(isLast ? batch.slice(0, -1) : batch))
    if (!isLast) return
    const error = last.type === 'error' ? last.error : null
    void this.#end(() => this.#job.renderer.push([last]), { error })
  }

  #open(): void {
    const { head, renderer } = this.#job
    const { journal, runnerId } = this.#deps
    this.#phase = 'open'
    const frames = renderer.open()
    const opened = { ...head, runnerId, object: renderer.stored() }
    this.#entry = journal.enter({
      id: this.id,
      opened: this.#isAccepted ? null : opened,
      written: (last) => this.#log.keptUpTo(last),
      givenUp: () => this.#log.keepForReaders(),
    })
    this.#append(frames)
  }

  #append(frames: string): void {
    if (frames === '') return
    const segment = this.#segmentOf(frames)
    this.#shownAt = performance.now()
    this.#log.append(segment)
    this.#entry?.append(segment)
  }

  #segmentOf(frames: string): LogSegment {
    const segment = {
      first: this.#log.last() + 1,
      last: this.#job.renderer.nextSequence() - 1,
      frames,
    }
    assert(segment.last >= segment.first, 'each frame has a sequence number')
    return segment
  }

  #beatAfter(ms: number) {
    const timer = setTimeout(() => this.#beat(), ms)
    timer.unref()
    return timer
  }

  /** Silence is told to those who watch; where nobody knows of the response there is nothing to say. */
  #beat(): void {
    const restMs = this.#shownAt + this.#deps.heartbeatMs - performance.now()
    try {
      if (restMs <= 0 && this.#phase === 'open' && !this.#log.isFull()) {
        this.#append(this.#job.renderer.heartbeat())
      } else if (restMs <= 0 && this.#phase === 'quiet' && this.#wasWatched) {
        this.#open()
      }
    } catch (error) {
      this.#fail(toAppError(error))
    }
    if (!this.#isRunning()) return
    this.#beatTimer = this.#beatAfter(restMs > 0 ? restMs : this.#deps.heartbeatMs)
  }

  /** Nobody can come back to what was never shown, since nobody knows its id. */
  #abandonMs(): number {
    const isKnown = this.#phase !== 'quiet' && this.#wasWatched
    return isKnown ? this.#deps.settings.abandonMs : 0
  }

  #abandon(): void {
    const reason = new AppError('client_closed', 'Nobody reads the response.')
    if (this.#phase === 'quiet') this.#fail(reason)
    else void this.cancel().catch(() => {})
  }

  #fail(error: AppError): void {
    if (this.#phase === 'quiet') this.#vanish(error)
    else void this.#end(() => this.#job.renderer.fail(error), { error })
    this.#controller.abort(error)
  }

  async #end(
    render: () => string,
    { error, isForgotten = false }: { error: AppError | null; isForgotten?: boolean },
  ): Promise<void> {
    const { renderer } = this.#job
    try {
      if (this.#phase === 'quiet') this.#open()
      this.#phase = 'ending'
      this.#stopTimers()
      let segment = this.#segmentOf(render())
      const outcome = await this.#write(segment, isForgotten)
      if (outcome === 'unstored') {
        const frames = renderer.unstored()
        segment = replaceEnd(segment, frames, renderer.nextSequence() - 1)
      }
      this.#log.append(segment)
      if (outcome === 'stored') this.#log.keptUpTo(segment.last)
      this.#log.end({ kind: 'complete' })
      this.#settled.resolve({ object: renderer.stored(), error })
      this.#leave()
    } catch (fault) {
      this.#deps.log.error('a response could not be ended', { response_id: this.id, error: fault })
      this.#vanish(toAppError(fault))
    }
  }

  async #write(segment: LogSegment, isForgotten: boolean) {
    const entry = this.#entry
    assert(entry, 'a response that was shown is in the journal')
    if (!isForgotten) return entry.end({ object: this.#job.renderer.stored(), segment })
    await entry.discard()
    return 'forgotten' as const
  }

  /** Ends it without a word in its log. */
  #vanish(error: AppError): void {
    this.#stopTimers()
    this.#log.end({ kind: 'failed', error })
    this.#settled.reject(error)
    void this.#entry?.discard()
    this.#leave()
  }

  #stopTimers(): void {
    clearTimeout(this.#beatTimer)
    this.#holders?.stop()
  }

  #leave(): void {
    if (this.#phase === 'over') return
    this.#phase = 'over'
    this.#deps.over(this)
  }
}

function endedEarly(): AppError {
  return new AppError('upstream_truncated', 'The upstream ended its answer before it was complete.')
}
