import type { FrameSource } from '#http/event-stream.ts'
import type { EventBatch } from '#inference/events.ts'
import type { EventBatches } from '#inference/inference.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { consume } from '#lib/pull-iterator.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Log } from '#telemetry/log.ts'

/** Renders the events of one generation as frames, or as the object that they add up to. */
type Renderer<Result> = {
  push(batch: EventBatch): string
  open(): string
  heartbeat(): string
  fail(error: AppError): string
  result(): Result
}

type RunGenerationOptions<Result> = {
  /** By default the generation has the signal of its request. */
  generate: (signal?: AbortSignal) => EventBatches
  renderer: Renderer<Result>
  context: Pick<RequestContext, 'requestId' | 'signal'>
  log: Pick<Log, 'error'>
}

/** A generation that runs at the pace of its client and ends with its connection. */
export function runGeneration<Result>(options: RunGenerationOptions<Result>) {
  const { generate, renderer, log, context } = options
  return {
    /** Either this or `result` is called, once. */
    source(): FrameSource<EventBatch> {
      const { controller } = followSignal(context.signal)
      const { signal } = controller
      const batches = generate(signal)
      // A suspended generator does not notice the abort.
      signal.addEventListener('abort', () => void batches.return().catch(() => {}), { once: true })
      return {
        items: batches,
        renderer,
        fail(error) {
          // A failed generation has an error event and a record of its own; this is a bug.
          if (error.kind === 'internal_error') {
            log.error('stream failed', { request_id: context.requestId, cause: error.cause })
          }
          return renderer.fail(error)
        },
        keepAlive: renderer,
        abandon: () => controller.abort(new AppError('client_closed', 'The client disconnected.')),
      }
    },
    /** Throws if the generation fails. */
    result: () => fold(generate(), renderer),
  }
}

/** A response without streaming is the folded stream, so the two cannot differ. */
function fold<Result>(batches: EventBatches, renderer: Renderer<Result>): Promise<Result> {
  return consume(batches, {
    take(batch) {
      renderer.push(batch)
      const last = batch.at(-1)
      // Nothing has been sent yet, so a failure can still be an HTTP status.
      if (last?.type === 'error') throw last.error
      return true
    },
    result: () => renderer.result(),
  })
}
