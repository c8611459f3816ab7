import { watch } from '#lib/deadline.ts'
import type { Expiring } from '#lib/deadlines.ts'
import { AppError } from '#lib/errors.ts'
import { type Failure, PullIterator, pull, type Subscriber } from '#lib/pull-iterator.ts'
import { endedEarly } from './decode-errors.ts'
import { type EventBatch, endOfBlock, type GenerationEvent, textCharsOf } from './events.ts'
import { readFirstOutput } from './first-output.ts'
import type { Admit, GenerationJob, InferenceDeps, Reservation } from './inference.ts'
import { ArgumentCheck, type ArgumentFault, beginsCall } from './object-arguments.ts'
import { type CallRecord, OpenCall } from './open-call.ts'

/** Counts running generations, and ends those that take too long. */
export type Admission = {
  /** Throws when the generation is not admitted; it then has no record. */
  enter(generation: RunningGeneration): void
  leave(generation: RunningGeneration): void
}

/** A generation in progress, as an observer sees it. */
export type RunningCall = {
  /** Of what is known so far; it changes until the end. */
  readonly record: Readonly<CallRecord>
  readonly elapsedMs: number
  readonly outputChars: number
  readonly isStreamed: boolean
}

/**
 * One generation, from admission to settling. See `Generate` for its contract. Its state is flat: each object
 * that an event touches is cold in cache by the next event of a slow stream.
 */
export class RunningGeneration
  extends PullIterator<EventBatch>
  implements Subscriber<EventBatch>, Expiring
{
  readonly #deps: InferenceDeps
  readonly #job: GenerationJob
  readonly #admission: Admission
  #phase: 'new' | 'running' | 'ending' | 'closed' = 'new'
  /** From the first pull until the end. */
  #call: OpenCall | null = null
  /** `performance.now()` of the read in progress after the first output. */
  #readingSinceMs = Number.POSITIVE_INFINITY
  /** Set by the first of these reads. */
  #stopWatching: (() => void) | null = null
  /** Set after the first output. */
  #batches: AsyncIterator<EventBatch> | null = null
  #lastEvent: GenerationEvent | undefined
  #charsLeft: number
  readonly #hasObjectArguments: boolean
  /** Null where arguments of calls may be any text, and before the first call. */
  #arguments: ArgumentCheck | null = null
  /** Whether the span of the call contains the output. */
  #isTraced = false
  /** `return()` was called during a pull: close after serving it. */
  #isCancelled = false

  constructor(deps: InferenceDeps, job: GenerationJob, admission: Admission) {
    super()
    this.#deps = deps
    this.#job = job
    this.#admission = admission
    this.#charsLeft = deps.limits.outputCharsMax
    this.#hasObjectArguments = job.objectArguments ?? false
  }

  /** Null before its start and after its end. */
  observe(): RunningCall | null {
    const call = this.#call
    if (call === null) return null
    return {
      record: call.record,
      elapsedMs: performance.now() - call.startedAtMs,
      outputChars: this.#deps.limits.outputCharsMax - this.#charsLeft,
      isStreamed: this.#job.streamed ?? true,
    }
  }

  protected onPull() {
    if (this.#phase === 'new') this.#start()
    else if (this.#phase === 'running') this.#read()
    else this.#close(null)
  }

  onNext(batch: EventBatch) {
    if (this.#call === null) return
    this.#readingSinceMs = Number.POSITIVE_INFINITY
    // Bytes without an event: the upstream is alive.
    if (batch.length === 0 && batch.relay === undefined) this.#read()
    else this.#deliver(this.#call, batch)
  }

  onError(error: unknown) {
    if (this.#call !== null) this.#fail(this.#call, error)
  }

  onComplete() {
    this.onError(endedEarly())
  }

  return(): Promise<IteratorResult<EventBatch, undefined>> {
    if (this.isPending) {
      this.#isCancelled = true
      this.abort()
    } else {
      this.#close(null)
    }
    return Promise.resolve({ done: true, value: undefined })
  }

  /** Ends the generation with this error, or as a client that disconnected. */
  abort(error?: AppError) {
    this.#call?.abort(error)
  }

  expire() {
    this.abort(totalTimeout(this.#deps.deadlines.totalMs))
  }

  #start() {
    const job = this.#job
    this.#phase = 'running'
    try {
      this.#admission.enter(this)
    } catch (error) {
      this.#close({ error })
      return
    }
    const call = new OpenCall('generate', job.request.model, job)
    this.#call = call
    this.#admit(call)
  }

  #admit(call: OpenCall) {
    const { request } = this.#job
    let admitted: ReturnType<Admit> | undefined
    try {
      admitted = this.#deps.admit?.('generate', this.#job, request.model, request)
    } catch (error) {
      this.#refuse(error)
      return
    }
    if (!(admitted instanceof Promise)) {
      this.#attempt(call, admitted ?? null)
      return
    }
    admitted.then(
      (reservation) => this.#attempt(call, reservation),
      (error: unknown) => this.#refuse(error),
    )
  }

  /** Ends without a record: the call was not admitted. */
  #refuse(error: unknown) {
    this.#call = null
    this.#release()
    this.#close({ error })
  }

  #attempt(call: OpenCall, reservation: Reservation | null) {
    const { deadlines, retry } = this.#deps
    const job = this.#job
    call.reservation = reservation
    const options = {
      retry,
      limitMs: deadlines.firstEventMs,
      streamed: job.streamed ?? true,
    }
    call
      .attempt(this.#deps, options, (adapter, context) => {
        const batches = adapter.generate(job.request, context)[Symbol.asyncIterator]()
        return readFirstOutput(batches)
      })
      .then(
        ({ batches, batch }) => {
          this.#batches = batches
          this.#deliver(call, batch)
        },
        (error: unknown) => this.#fail(call, error),
      )
  }

  #read() {
    if (this.#batches === null) throw new Error('one pull at a time')
    this.#readingSinceMs = performance.now()
    this.#stopWatching ??= this.#watchGaps()
    pull(this.#batches, this)
  }

  #watchGaps(): () => void {
    const { gapMs } = this.#deps.deadlines
    return watch(
      gapMs,
      () => this.#readingSinceMs,
      () => this.abort(gapTimeout(gapMs)),
    )
  }

  #deliver(call: OpenCall, batch: EventBatch) {
    this.#charsLeft -= textCharsOf(batch)
    if (this.#charsLeft < 0) {
      this.#fail(call, tooLong(this.#deps.limits.outputCharsMax))
      return
    }
    if (this.#lastEvent === undefined) this.#isTraced = call.begin()
    if (this.#isTraced) call.trace(batch)
    const fault = this.#findFault(batch)
    if (fault === null) this.#pass(call, batch)
    else this.#reject(call, batch, fault)
  }

  #pass(call: OpenCall, batch: EventBatch) {
    const lastEvent = batch.at(-1) ?? this.#lastEvent
    this.#lastEvent = lastEvent
    if (lastEvent?.type === 'finish') {
      this.#phase = 'ending'
      call.complete(lastEvent.usage)
    }
    this.#emit(batch)
  }

  #fail(call: OpenCall, error: unknown) {
    const last = this.#lastEvent
    this.#endFailed(call.fail(error), last === undefined ? [] : endOfBlock(last))
  }

  #findFault(batch: EventBatch): ArgumentFault | null {
    if (this.#hasObjectArguments && beginsCall(batch)) this.#arguments ??= new ArgumentCheck()
    return this.#arguments?.find(batch) ?? null
  }

  /** Ends the upstream request before the error is emitted: the reader may be slow. */
  #reject(call: OpenCall, batch: EventBatch, { at, error }: ArgumentFault) {
    if (this.#batches !== null) closeInBackground(this.#batches)
    this.#endFailed(call.reject(error, batch), batch.slice(0, at + 1))
  }

  /** After the first output, the error is the last event. */
  #endFailed(error: AppError, events: EventBatch) {
    if (this.#lastEvent === undefined) {
      this.#close({ error })
      return
    }
    this.#phase = 'ending'
    this.#emit([...events, { type: 'error', error }])
  }

  #emit(batch: EventBatch) {
    this.emit(batch)
    if (this.#isCancelled) this.#close(null)
  }

  #close(failure: Failure) {
    const call = this.#call
    this.#phase = 'closed'
    this.#call = null
    if (call !== null) {
      this.#release()
      call.record.outputChars = this.#deps.limits.outputCharsMax - this.#charsLeft
      if (this.#batches !== null) closeInBackground(this.#batches)
      this.#deps.onSettled(call.close(), this.#job)
    }
    this.emitEnd(failure)
  }

  #release() {
    this.#stopWatching?.()
    this.#admission.leave(this)
  }
}

/** The errors of an adapter that cleans up no longer matter. */
function closeInBackground(batches: AsyncIterator<EventBatch>) {
  void Promise.resolve(batches.return?.()).catch(() => {})
}

function tooLong(charsMax: number): AppError {
  return new AppError(
    'upstream_invalid_answer',
    `The upstream's response is longer than the limit of ${charsMax} characters.`,
  )
}

function gapTimeout(gapMs: number): AppError {
  return new AppError(
    'upstream_gap_timeout',
    `The upstream sent nothing for ${gapMs / 1000} s in the middle of its response.`,
  )
}

function totalTimeout(totalMs: number): AppError {
  return new AppError(
    'upstream_total_timeout',
    `The generation took longer than ${totalMs / 1000} s.`,
  )
}
