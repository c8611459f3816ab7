import type { EventBatch } from '#inference/events.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { ResponseRenderer } from './render.ts'
import type { Caller, Plan, Turn, TurnDeps } from './turn.ts'

/** A response that is stored nowhere: it lives and ends with its connection, at its reader's pace. */
export function runDirectly(deps: Pick<TurnDeps, 'log'>, plan: Plan, caller: Caller): Turn {
  const { renderer } = plan
  const { controller } = followSignal(caller.signal)
  let committed = false
  const batches = plan.generate({ signal: controller.signal, committed: () => committed })
  // What nobody pulls is suspended, where an abort alone does not reach it.
  const end = () => void batches.return().catch(() => {})
  controller.signal.addEventListener('abort', end, { once: true })
  return {
    id: plan.head.id,
    streams: plan.parsed.stream || caller.memory !== undefined,
    source: () => ({
      items: batches,
      render: renderer.push,
      fail(error) {
        // A generation that fails tells it by an event and its own record; this is a fault of ours.
        if (error.kind === 'internal_error') {
          deps.log.error('a stream failed', { request_id: caller.requestId, cause: error.cause })
        }
        return renderer.fail(error)
      },
      life: { open: renderer.open, heartbeat: renderer.heartbeat },
      commit() {
        committed = true
      },
      abandon: () => controller.abort(new AppError('client_closed', 'The reader has gone.')),
    }),
    answer: () => fold(batches, renderer),
    context: () => [...plan.history.items, ...plan.head.input, ...renderer.stored().output],
  }
}

/** The answer without streaming is the folded stream, so the two cannot differ. */
async function fold(batches: AsyncIterable<EventBatch>, renderer: ResponseRenderer) {
  for await (const batch of batches) {
    renderer.push(batch)
    const last = batch.at(-1)
    // Nothing was sent yet, so a failure in the middle is still an HTTP status.
    if (last?.type === 'error') throw last.error
  }
  return renderer.result()
}
