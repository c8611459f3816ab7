import { followSignal, sleep, Watchdog } from '#lib/deadline.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { EventBatch, GenerationEvent, Relay } from './events.ts'
import { endOfBlock } from './grammar.ts'
import { noDescriptorLeft } from './no-descriptor.ts'
import { type GenerationRecord, OpenRecord } from './record.ts'
import { joinRelays, withRelay } from './relay.ts'
import type { GenerationRequest } from './request.ts'
import { pauseBeforeRetryMs, type RetryPolicy } from './retry.ts'
import type { Transport } from './transport.ts'
import type { Adapter, AdapterLimits, Upstream, UpstreamKind } from './upstream.ts'

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
  readWhole?: boolean
  /** What the log calls it. */
  requestId: string
}

/**
 * One generation: yields batches in the order of `grammar.ts`. A failure before the first output is
 * thrown as an `AppError`; after it, it is the last event. The first batch holds output, not only a
 * start. What stands in front of `Generations.generate` keeps this contract.
 */
export type Generate = (job: GenerationJob) => AsyncGenerator<EventBatch, void, void>

export type GenerationDeps = {
  adapters: Readonly<Record<UpstreamKind, Adapter>>
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

  async function* generate(job: GenerationJob): AsyncGenerator<EventBatch, void, void> {
    if (stopped !== null) throw stopped
    if (running.size >= deps.limits.streamsMax) {
      throw new AppError('too_many_streams', 'The server has no room for another generation.', {
        retryAfterS: 1,
      })
    }
    if (running.size >= streamsWithinDescriptors) throw noDescriptorLeft()
    const { controller, release } = followSignal(job.signal)
    const { gapMs, totalMs } = deps.deadlines
    const total = setTimeout(() => controller.abort(totalTimeout(totalMs)), totalMs)
    const watchdog = new Watchdog(gapMs, () => controller.abort(gapTimeout(gapMs)))
    const record = new OpenRecord({ requestId: job.requestId, model: job.request.model })
    let attempt: Attempt | undefined
    let last: GenerationEvent | undefined
    const text = new TextLimit(deps.limits.outputCharsMax)
    running.add(controller)
    try {
      attempt = await firstOutput(deps, job, { signal: controller.signal, record })
      text.spend(attempt.first)
      last = attempt.first.at(-1)
      record.output(attempt.first)
      yield attempt.first
      while (last?.type !== 'finish') {
        watchdog.begin()
        const next = await attempt.batches.next()
        watchdog.end()
        if (next.done) throw endedEarly()
        if (isEmpty(next.value)) continue
        text.spend(next.value)
        last = next.value.at(-1) ?? last
        record.output(next.value)
        yield next.value
      }
    } catch (error) {
      const failure = failureOf(error)
      record.fail(failure)
      if (last === undefined) throw failure
      yield [...endOfBlock(last), { type: 'error', error: failure }]
    } finally {
      clearTimeout(total)
      watchdog.stop()
      attempt?.close()
      release()
      running.delete(controller)
      deps.settled(record.close(), job)
    }
  }

  return {
    generate,
    running: () => running.size,
    stopAll(error) {
      stopped = error
      for (const controller of running) controller.abort(error)
    },
  }
}

type Run = { signal: AbortSignal; record: OpenRecord }

/** An upstream at work, with everything that it gave up to and with its first output. */
type Attempt = {
  readonly first: EventBatch
  readonly batches: AsyncIterator<EventBatch>
  close(): void
}

/** Tries until an upstream gives output; throws the last failure when nothing helps. */
async function firstOutput(deps: GenerationDeps, job: GenerationJob, run: Run): Promise<Attempt> {
  for (let tries = 0; ; tries++) {
    const target = job.targets[tries % job.targets.length]
    if (target === undefined) throw new AppError('internal_error', 'The model has no upstream.')
    run.record.startTry(target.upstream.name, tries)
    const { controller, release } = followSignal(run.signal)
    const { signal } = controller
    const batches = open(deps, { request: job.request, target, signal })
    const close = () => {
      release()
      stop(batches)
    }
    try {
      const first = await untilOutput(batches, controller, deps.deadlines.firstEventMs)
      return { first, batches, close }
    } catch (error) {
      close()
      const failure = failureOf(error)
      const untriedUpstream = tries + 1 < job.targets.length
      const pauseMs = job.committed()
        ? null
        : pauseBeforeRetryMs(failure, tries, { ...deps.retry, untriedUpstream })
      if (pauseMs === null || run.signal.aborted) throw failure
      await sleep(pauseMs, run.signal)
    }
  }
}

function open(
  deps: GenerationDeps,
  attempt: { request: GenerationRequest; target: Target; signal: AbortSignal },
): AsyncIterator<EventBatch> {
  const { upstream, model } = attempt.target
  const { transport, limits } = deps
  const context = { upstream, model, transport, limits, signal: attempt.signal }
  return deps.adapters[upstream.kind].generate(attempt.request, context)[Symbol.asyncIterator]()
}

/** Everything up to and with the first batch that holds output. */
async function untilOutput(
  batches: AsyncIterator<EventBatch>,
  attempt: AbortController,
  firstEventMs: number,
): Promise<EventBatch> {
  const timer = setTimeout(() => attempt.abort(firstEventTimeout(firstEventMs)), firstEventMs)
  try {
    const held: GenerationEvent[] = []
    let relay: Relay | undefined
    for (;;) {
      const next = await batches.next()
      if (next.done) throw endedEarly()
      held.push(...next.value)
      relay = joinRelays(relay, next.value.relay)
      if (held.some((event) => event.type !== 'generation-start')) return withRelay(held, relay)
    }
  } finally {
    clearTimeout(timer)
  }
}

/** Lets an adapter clean up; nobody waits for it, and what it may still complain of is known. */
function stop(batches: AsyncIterator<EventBatch>): void {
  void Promise.resolve(batches.return?.()).catch(() => {})
}

/** An abort that carries no reason of ours comes from a caller that has gone. */
export function failureOf(error: unknown): AppError {
  if (error instanceof DOMException && error.name === 'AbortError') {
    return new AppError('client_closed', 'The caller has gone.', { cause: error })
  }
  return toAppError(error)
}

/** Bytes came, and nothing that could be told from them. */
function isEmpty(batch: EventBatch): boolean {
  return batch.length === 0 && batch.relay === undefined
}

/** Counts the text of batches, and throws when there is more of it than may be. */
class TextLimit {
  readonly #charsMax: number
  #charsLeft: number

  constructor(charsMax: number) {
    this.#charsMax = charsMax
    this.#charsLeft = charsMax
  }

  spend(batch: EventBatch) {
    for (const event of batch) if ('text' in event) this.#charsLeft -= event.text.length
    // Of what no event tells, the frames are all that there is to count.
    if (batch.length === 0)
      for (const { data } of batch.relay?.frames ?? []) this.#charsLeft -= data.length
    if (this.#charsLeft >= 0) return
    throw new AppError(
      'upstream_invalid_answer',
      `The upstream's answer is longer than ${this.#charsMax} characters, which is the limit.`,
    )
  }
}

function endedEarly(): AppError {
  return new AppError('upstream_truncated', 'The upstream ended its answer before it was complete.')
}

function firstEventTimeout(firstEventMs: number): AppError {
  const seconds = firstEventMs / 1000
  return new AppError(
    'upstream_first_event_timeout',
    `The upstream gave no output within ${seconds} s.`,
  )
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
