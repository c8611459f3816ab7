import { followSignal, sleep } from '#lib/deadline.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import type { EventBatch, GenerationEvent, Relay } from './events.ts'
import type { GenerationDeps, GenerationJob, Target } from './generate.ts'
import type { OpenRecord } from './record.ts'
import { joinRelays, withRelay } from './relay.ts'
import type { GenerationRequest } from './request.ts'
import { pauseBeforeRetryMs } from './retry.ts'

type Run = { signal: AbortSignal; record: OpenRecord }

/** An upstream at work, with everything that it gave up to and with its first output. */
export type Attempt = {
  readonly first: EventBatch
  readonly batches: AsyncIterator<EventBatch>
  close(): void
}

/** Tries until an upstream gives output; throws the last failure when nothing helps. */
export async function firstOutput(
  deps: GenerationDeps,
  job: GenerationJob,
  run: Run,
): Promise<Attempt> {
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

export function endedEarly(): AppError {
  return new AppError('upstream_truncated', 'The upstream ended its answer before it was complete.')
}

function firstEventTimeout(firstEventMs: number): AppError {
  const seconds = firstEventMs / 1000
  return new AppError(
    'upstream_first_event_timeout',
    `The upstream gave no output within ${seconds} s.`,
  )
}
