import type { FrameSource } from '#http/event-stream.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { Frames } from '#responses/runs.ts'
import type { Log } from '#telemetry/log.ts'
import type { Caller, Plan, Turn, TurnDeps } from './turn.ts'

/** A response that is stored: it runs by itself, and its connection is one of its readers. */
export function runStored(deps: Pick<TurnDeps, 'log' | 'runs'>, plan: Plan, caller: Caller): Turn {
  const { head, history, parsed, renderer } = plan
  const run = deps.runs.start(plan)
  return {
    id: head.id,
    streams: parsed.stream || caller.memory !== undefined,
    source() {
      const { controller } = followSignal(caller.signal)
      const { requestId } = caller
      return readFrames(run.frames(controller.signal), { controller, requestId, log: deps.log })
    },
    async answer() {
      const release = run.retain()
      try {
        const { error } = await unlessGone(run.ended(), caller.signal)
        if (error !== null) throw error
        return renderer.result()
      } finally {
        release()
      }
    },
    context: () => [...history.items, ...head.input, ...renderer.stored().output],
  }
}

/** For a reader of a response that may be queued. */
export const waitingLife = { open: () => '', heartbeat: () => ': waiting\n\n' }

/** Who reads frames of a log; `controller` ends the reading. */
export type FrameReader = { controller: AbortController; requestId: string; log: Log }

/**
 * Frames of a log for one reader. A response that runs brings its own signs of life; one that waits
 * for its turn has none yet, and who reads it is given a comment instead.
 */
export function readFrames(
  items: Frames,
  reader: FrameReader,
  life: FrameSource<string>['life'] = null,
): FrameSource<string> {
  return {
    items,
    render: (frames) => frames,
    fail(error) {
      reader.log.error('the frames of a response could not be read', {
        request_id: reader.requestId,
        reason: error.message,
        cause: error.cause,
      })
      // The response itself did not end; whoever reads may come back for the rest.
      return ''
    },
    life,
    commit: () => {},
    abandon: () => reader.controller.abort(new AppError('client_closed', 'The reader has gone.')),
  }
}

/** The outcome of the work, or the end of the wait for it; the work itself goes on. */
function unlessGone<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const gone = new Promise<never>((_, reject) => {
    const leave = () => reject(new AppError('client_closed', 'The client has gone.'))
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
  return Promise.race([work, gone])
}
