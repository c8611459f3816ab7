import type { AppError } from '#lib/errors.ts'
import { countFrames } from './log-segment.ts'
import { failedObject } from './lost.ts'
import type { ResponseObject } from './response.ts'
import type { FrameRenderer, RunPlan } from './runs.ts'
import type { QueuedResponse } from './stored.ts'

type RenderEnd = (object: ResponseObject, nextSequence: number) => string

/** For a response of the queue that cannot begin: it was accepted, so it ends as others do. */
export function failingJob(queued: QueuedResponse, error: AppError, renderEnd: RenderEnd): RunPlan {
  return {
    head: queued,
    renderer: endRenderer({ object: queued.object, last: queued.segment.last }, renderEnd),
    async *generate(): AsyncGenerator<never, void> {
      // Nothing is yielded; the failure is all there is.
      yield* []
      throw error
    },
  }
}

/** Renders the end of a response whose log goes up to `last`, and nothing before it. */
export function endRenderer(
  response: { object: ResponseObject; last: number },
  renderEnd: RenderEnd,
): FrameRenderer {
  let object: ResponseObject = { ...response.object, status: 'in_progress' }
  const terminalAt = response.last + 1
  let next = terminalAt
  const end = (ended: ResponseObject) => {
    object = ended
    const frames = renderEnd(object, terminalAt)
    next = terminalAt + countFrames(frames)
    return frames
  }
  return {
    push: () => '',
    open: () => '',
    heartbeat: () => '',
    fail: (error) => end(failedObject(object, error)),
    cancel: () => end({ ...object, status: 'cancelled' }),
    unstored: () => end({ ...object, store: false }),
    nextSequence: () => next,
    stored: () => object,
  }
}
