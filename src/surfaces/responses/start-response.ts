import type { FrameSource } from '#http/event-stream.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Frames } from '#responses/frame-stream.ts'
import type { ResponseRuns } from '#responses/runs.ts'
import type { ResponseHead } from '#responses/stored.ts'
import { runGeneration } from '#surfaces/run-generation.ts'
import type { Log } from '#telemetry/log.ts'
import type { QueuedRequest } from './queued-request.ts'
import { renderQueued } from './render.ts'
import type { ResponsePlan, ResponseServiceDeps, RunningResponse } from './service.ts'

type Started = Pick<RunningResponse, 'source' | 'result'>

/**
 * A stored response. Its stream is independent of the connection, which is one of its subscribers. A
 * whole response ends with its connection and is stored afterwards: nobody knows its id before.
 */
export function startStored(
  deps: Pick<ResponseServiceDeps, 'log' | 'runs'>,
  plan: ResponsePlan,
  context: RequestContext,
): Started {
  const { generate, head, renderer } = plan
  return {
    source() {
      const run = deps.runs.start(plan)
      const { controller } = followSignal(context.signal)
      return frameSource(run.frames(controller.signal), { controller, context, log: deps.log })
    },
    async result() {
      const result = await runGeneration({ generate, renderer, context, log: deps.log }).result()
      if (await deps.runs.storeEnded(head, renderer.stored())) return result
      renderer.unstored()
      return renderer.result()
    },
  }
}

/** Queues a background response, which runs on any worker when there is capacity. */
export async function enqueueResponse(
  deps: Pick<ResponseServiceDeps, 'log' | 'runs' | 'sealer'>,
  plan: ResponsePlan,
  { body, context }: { body: unknown; context: RequestContext },
): Promise<Started> {
  const { head } = plan
  const { object, frames, count } = renderQueued({ ...head, echo: plan.parsed.echo })
  const { groups } = context.principal
  const { keyId, requestId } = context
  const request: QueuedRequest = { body, groups, keyId, requestId }
  await deps.runs.enqueue({
    ...head,
    keyId: keyId ?? head.ownerId,
    request: deps.sealer.seal('request', head.ownerId, JSON.stringify(request)),
    object,
    segment: { first: 0, last: count - 1, frames },
  })
  return {
    source() {
      const { controller } = followSignal(context.signal)
      const frames = watchFromStart(deps.runs, head, controller.signal)
      return frameSource(frames, { controller, context, log: deps.log }, queuedKeepAlive)
    },
    result: async () => object,
  }
}

async function* watchFromStart(
  runs: Pick<ResponseRuns, 'watch'>,
  { id, ownerId }: Pick<ResponseHead, 'id' | 'ownerId'>,
  signal: AbortSignal,
): Frames {
  const frames = await runs.watch(ownerId, id, { startingAfter: -1, signal })
  if (frames !== undefined) yield* frames
}

/** Heartbeats of a response that may still be queued. */
export const queuedKeepAlive = { open: () => '', heartbeat: () => ': waiting\n\n' }

/** A subscriber of an event log; `controller` ends the subscription. */
type Subscriber = { controller: AbortController; context: RequestContext; log: Log }

/**
 * The frames of an event log for one subscriber. A running response logs its own heartbeats; `life`
 * sends comments while there is none.
 */
export function frameSource(
  items: Frames,
  subscriber: Subscriber,
  keepAlive: FrameSource<string>['keepAlive'] = null,
): FrameSource<string> {
  return {
    items,
    renderer: unchanged,
    fail(error) {
      subscriber.log.error('response event log read failed', {
        request_id: subscriber.context.requestId,
        reason: error.message,
        cause: error.cause,
      })
      // The response itself has not ended: the client can resume it, so the stream gets no end.
      return ''
    },
    keepAlive,
    abandon: () =>
      subscriber.controller.abort(new AppError('client_closed', 'The client disconnected.')),
  }
}

const unchanged = { push: (frames: string) => frames }
