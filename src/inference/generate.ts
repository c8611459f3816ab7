import { followSignal, Watchdog } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { type Failure, PullIterator, pull, type Subscriber } from '#lib/pull-iterator.ts'
import { type Attempt, endedEarly, failureOf, firstOutput } from './attempt.ts'
import type { EventBatch, GenerationEvent } from './events.ts'
import { endOfBlock } from './grammar.ts'
import { noDescriptorLeft } from './no-descriptor.ts'
import { type GenerationRecord, OpenRecord } from './record.ts'
import type { GenerationRequest } from './request.ts'
import type { RetryPolicy } from './retry.ts'
import { TextLimit } from './text-limit.ts'
import type { Transport } from './transport.ts'
import type { AdapterLimits, Upstream } from './upstream.ts'
import type { Adapters } from './upstreams/index.ts'

/** Where a request may go: an upstream, and the model's name there. */
export type Target = {
  readonly upstream: Upstream
  readonly model: string
  /** The path of the model's `tokenizer.json`, where the operator gave one. */
  readonly tokenizerFile?: string
}

type Deadlines = {
  readonly firstEventMs: number
  readonly gapMs: number
  readonly totalMs: number
}

export type GenerationJob = {
  request: GenerationRequest
  /** In order of preference, at least one. */
  targets: readonly Target[]
  /** Ends the generation; aborted when its caller has gone. */
  signal: AbortSignal
  /** Whether a byte went to the caller; from then on nothing is tried again. */
  committed: () => boolean
  /** Whether the answer is read only when it is whole, so that it may be held until it was checked. */
  buffered?: boolean
  /** What the log calls it. */
  requestId: string
}

/**
 * One generation: yields batches in the order of `grammar.ts`. A failure before the first output is
 * thrown as an `AppError`; after it, it is the last event. The first batch holds output, not only a
 * start. What stands in front of `Generations.generate` keeps this contract.
 */
export type Generate = (job: GenerationJob) => EventBatches

/** The batches of one generation; nothing begins before the first is asked for. */
export type EventBatches = AsyncIterableIterator<EventBatch, void> & {
  return(): Promise<unknown>
}

export type GenerationDeps = {
  adapters: Adapters
  transport: Transport
  limits: AdapterLimits & {
    readonly streamsMax: number
    /** The most text of one generation, in characters: whoever renders it holds it whole. */
    readonly outputCharsMax: number
  }
  /** What the descriptors of this process are enough for; without it there is no such bound. */
  streamsWithinDescriptors?: number
  deadlines: Deadlines
  retry: RetryPolicy
  settled: (record: GenerationRecord, job: GenerationJob) => void
}

/** The generations of this process: starts them, counts them, and can end them all. */
export type Generations = {
  readonly generate: Generate
  running(): number
  /** Ends every running generation with this error, and every one that would begin. */
  stopAll(error: AppError): void
}

export function createGenerations(deps: GenerationDeps): Generations {
  const running = new Set<AbortController>()
  let stopped: AppError | null = null
  const { streamsWithinDescriptors = Number.POSITIVE_INFINITY } = deps

  const enter = (controller: AbortController) => {
    if (stopped !== null) throw stopped
    if (running.size >= deps.limits.streamsMax) {
      throw new AppError('too_many_streams', 'The server has no room for another generation.', {
        retryAfterS: 1,
      })
    }
    if (running.size >= streamsWithinDescriptors) throw noDescriptorLeft()
    running.add(controller)
    return () => running.delete(controller)
  }
  return {
    generate: (job) => new RunningGeneration(deps, job, enter),
    running: () => running.size,
    stopAll(error) {
      stopped = error
      for (const controller of running) controller.abort(error)
    },
  }
}

/** Counts a generation in, and gives what counts it out; throws where there is no room for it. */
type Enter = (controller: AbortController) => () => void

/** What a generation has from its first read on. */
type Run = {
  readonly controller: AbortController
  readonly watchdog: Watchdog
  readonly record: OpenRecord
  readonly text: TextLimit
  /** Lets go of everything that outlives it. */
  readonly release: () => void
  attempt: Attempt | null
}

class RunningGeneration extends PullIterator<EventBatch> implements Subscriber<EventBatch> {
  readonly #deps: GenerationDeps
  readonly #job: GenerationJob
  readonly #enter: Enter
  #phase: 'new' | 'running' | 'ending' | 'over' = 'new'
  #run: Run | null = null
  #last: GenerationEvent | undefined
  /** Whether nothing more is wanted after what is waited for. */
  #isLeft = false

  constructor(deps: GenerationDeps, job: GenerationJob, enter: Enter) {
    super()
    this.#deps = deps
    this.#job = job
    this.#enter = enter
  }

  protected onPull() {
    if (this.#phase === 'new') this.#begin()
    else if (this.#phase === 'running' && this.#run !== null) this.#read(this.#run)
    else this.#close(null)
  }

  onNext(batch: EventBatch) {
    const run = this.#run
    if (run === null) return
    run.watchdog.end()
    if (isEmpty(batch)) this.#read(run)
    else this.#give(run, batch)
  }

  onError(error: unknown) {
    if (this.#run !== null) this.#fail(this.#run, error)
  }

  onComplete() {
    this.onError(endedEarly())
  }

  return(): Promise<IteratorResult<EventBatch, undefined>> {
    // Whoever still waits is told so first.
    if (this.isPending) this.#leave()
    else this.#close(null)
    return Promise.resolve({ done: true, value: undefined })
  }

  #begin() {
    this.#phase = 'running'
    let run: Run
    try {
      run = this.#open()
    } catch (error) {
      this.#close({ error })
      return
    }
    this.#run = run
    const { signal } = run.controller
    firstOutput(this.#deps, this.#job, { signal, record: run.record }).then(
      (attempt) => {
        run.attempt = attempt
        this.#give(run, attempt.first)
      },
      (error: unknown) => this.#fail(run, error),
    )
  }

  #open(): Run {
    const { deadlines, limits } = this.#deps
    const { signal, requestId, request } = this.#job
    const { controller, release: unfollow } = followSignal(signal)
    let countOut: () => void
    try {
      countOut = this.#enter(controller)
    } catch (error) {
      unfollow()
      throw error
    }
    const { gapMs, totalMs } = deadlines
    const total = setTimeout(() => controller.abort(totalTimeout(totalMs)), totalMs)
    const release = () => {
      clearTimeout(total)
      unfollow()
      countOut()
    }
    return {
      controller,
      watchdog: new Watchdog(gapMs, () => controller.abort(gapTimeout(gapMs))),
      record: new OpenRecord({ requestId, model: request.model }),
      text: new TextLimit(limits.outputCharsMax),
      release,
      attempt: null,
    }
  }

  #read({ attempt, watchdog }: Run) {
    if (attempt === null) throw new Error('batches are asked for one at a time')
    watchdog.begin()
    pull(attempt.batches, this)
  }

  #give(run: Run, batch: EventBatch) {
    try {
      run.text.spend(batch)
    } catch (error) {
      this.#fail(run, error)
      return
    }
    this.#last = batch.at(-1) ?? this.#last
    if (this.#last?.type === 'finish') this.#phase = 'ending'
    run.record.output(batch)
    this.#tell(batch)
  }

  #fail(run: Run, error: unknown) {
    const failure = failureOf(error)
    run.record.fail(failure)
    if (this.#last === undefined) this.#close({ error: failure })
    else {
      this.#phase = 'ending'
      this.#tell([...endOfBlock(this.#last), { type: 'error', error: failure }])
    }
  }

  #tell(batch: EventBatch) {
    this.emit(batch)
    if (this.#isLeft) this.#close(null)
  }

  #leave() {
    this.#isLeft = true
    this.#run?.controller.abort()
  }

  #close(failure: Failure) {
    const run = this.#run
    this.#phase = 'over'
    this.#run = null
    if (run !== null) {
      run.watchdog.stop()
      run.attempt?.close()
      run.release()
      this.#deps.settled(run.record.close(), this.#job)
    }
    this.emitEnd(failure)
  }
}

/** Bytes came, and nothing that could be told from them. */
function isEmpty(batch: EventBatch): boolean {
  return batch.length === 0 && batch.relay === undefined
}

function gapTimeout(gapMs: number): AppError {
  const seconds = gapMs / 1000
  return new AppError(
    'upstream_gap_timeout',
    `The upstream was silent for ${seconds} s in the middle of its answer.`,
  )
}

function totalTimeout(totalMs: number): AppError {
  const seconds = totalMs / 1000
  return new AppError('upstream_total_timeout', `The generation took longer than ${seconds} s.`)
}
