import { Watchdog } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { type Failure, PullIterator, pull, type Subscriber } from '#lib/pull-iterator.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { type Attempt, attemptTargets, failureOf } from './attempt.ts'
import type { CallKind } from './call-record.ts'
import {
  type EventBatch,
  type GenerationEvent,
  joinRelays,
  type Relay,
  withRelay,
} from './events.ts'
import { endOfBlock } from './grammar.ts'
import type { GenerationJob, InferenceDeps, OpenCall } from './inference.ts'

type OpenCallFunction = (
  kind: CallKind,
  call: { context: RequestContext; model: string; job: GenerationJob },
) => OpenCall

/** What exists from the first pull until the end. */
type Started = {
  readonly call: OpenCall
  readonly watchdog: Watchdog
  readonly totalTimer: Timer
  output: Output | null
}

/** The successful attempt: its first output, and the batches that follow. */
type Output = {
  readonly first: EventBatch
  readonly batches: AsyncIterator<EventBatch>
  close(): void
}

/** One generation, from admission to settling. See `Generate` for its contract. */
export class RunningGeneration extends PullIterator<EventBatch> implements Subscriber<EventBatch> {
  readonly #deps: InferenceDeps
  readonly #job: GenerationJob
  readonly #openCall: OpenCallFunction
  #phase: 'new' | 'running' | 'ending' | 'closed' = 'new'
  #started: Started | null = null
  #lastEvent: GenerationEvent | undefined
  #charsLeft: number
  /** `return()` was called during a pull: close after serving it. */
  #isCancelled = false

  constructor(deps: InferenceDeps, job: GenerationJob, openCall: OpenCallFunction) {
    super()
    this.#deps = deps
    this.#job = job
    this.#openCall = openCall
    this.#charsLeft = deps.limits.outputCharsMax
  }

  protected onPull() {
    if (this.#phase === 'new') this.#start()
    else if (this.#phase === 'running' && this.#started !== null) this.#read(this.#started)
    else this.#close(null)
  }

  onNext(batch: EventBatch) {
    const started = this.#started
    if (started === null) return
    started.watchdog.end()
    // Bytes without an event: the upstream is alive.
    if (batch.length === 0 && batch.relay === undefined) this.#read(started)
    else this.#deliver(started, batch)
  }

  onError(error: unknown) {
    if (this.#started !== null) this.#fail(this.#started, error)
  }

  onComplete() {
    this.onError(endedEarly())
  }

  return(): Promise<IteratorResult<EventBatch, undefined>> {
    if (this.isPending) {
      this.#isCancelled = true
      this.#started?.call.controller.abort()
    } else {
      this.#close(null)
    }
    return Promise.resolve({ done: true, value: undefined })
  }

  #start() {
    const { gapMs, totalMs, firstEventMs } = this.#deps.deadlines
    const job = this.#job
    const { context, targets, request } = job
    this.#phase = 'running'
    let call: OpenCall
    try {
      call = this.#openCall('generate', { context, model: request.model, job })
    } catch (error) {
      this.#close({ error })
      return
    }
    const { controller, record } = call
    const started: Started = {
      call,
      watchdog: new Watchdog(gapMs, () => controller.abort(gapTimeout(gapMs))),
      totalTimer: setTimeout(() => controller.abort(totalTimeout(totalMs)), totalMs),
      output: null,
    }
    this.#started = started
    attemptTargets(
      this.#deps,
      {
        context,
        targets,
        signal: controller.signal,
        record,
        retry: this.#deps.retry,
        mayRetry: () => !job.committed(),
        limitMs: firstEventMs,
      },
      (attempt) => readFirstOutput(job, attempt),
    ).then(
      (output) => {
        started.output = output
        this.#deliver(started, output.first)
      },
      (error: unknown) => this.#fail(started, error),
    )
  }

  #read({ output, watchdog }: Started) {
    if (output === null) throw new Error('one pull at a time')
    watchdog.begin()
    pull(output.batches, this)
  }

  #deliver(started: Started, batch: EventBatch) {
    this.#charsLeft -= textCharsOf(batch)
    if (this.#charsLeft < 0) {
      this.#fail(started, tooLong(this.#deps.limits.outputCharsMax))
      return
    }
    this.#lastEvent = batch.at(-1) ?? this.#lastEvent
    if (this.#lastEvent?.type === 'finish') this.#phase = 'ending'
    started.call.record.output(batch)
    this.#emit(batch)
  }

  #fail(started: Started, error: unknown) {
    const failure = failureOf(error)
    started.call.record.fail(failure)
    if (this.#lastEvent === undefined) this.#close({ error: failure })
    else {
      this.#phase = 'ending'
      this.#emit([...endOfBlock(this.#lastEvent), { type: 'error', error: failure }])
    }
  }

  #emit(batch: EventBatch) {
    this.emit(batch)
    if (this.#isCancelled) this.#close(null)
  }

  #close(failure: Failure) {
    const started = this.#started
    this.#phase = 'closed'
    this.#started = null
    if (started !== null) {
      started.watchdog.stop()
      clearTimeout(started.totalTimer)
      started.output?.close()
      started.call.settle()
    }
    this.emitEnd(failure)
  }
}

/** Reads up to the first batch with output. A failure closes the attempt's batches. */
async function readFirstOutput(
  { request }: GenerationJob,
  { adapter, context, release }: Attempt,
): Promise<Output> {
  const batches = adapter.generate(request, context)[Symbol.asyncIterator]()
  const close = () => {
    release()
    // The adapter cleans up in the background; its errors no longer matter.
    void Promise.resolve(batches.return?.()).catch(() => {})
  }
  try {
    const held: GenerationEvent[] = []
    let relay: Relay | undefined
    for (;;) {
      const next = await batches.next()
      if (next.done) throw endedEarly()
      held.push(...next.value)
      relay = joinRelays(relay, next.value.relay)
      if (held.some((event) => event.type !== 'generation-start')) {
        return { first: withRelay(held, relay), batches, close }
      }
    }
  } catch (error) {
    close()
    throw error
  }
}

function textCharsOf(batch: EventBatch): number {
  let chars = 0
  for (const event of batch) if ('text' in event) chars += event.text.length
  // Frames without events are counted by their own length.
  if (batch.length === 0) for (const { data } of batch.relay?.frames ?? []) chars += data.length
  return chars
}

function tooLong(charsMax: number): AppError {
  return new AppError(
    'upstream_invalid_answer',
    `The upstream's response is longer than the limit of ${charsMax} characters.`,
  )
}

function endedEarly(): AppError {
  return new AppError(
    'upstream_truncated',
    'The upstream ended its response before it was complete.',
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
