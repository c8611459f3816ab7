import { followSignal } from '#lib/deadline.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { Frames, ResponseRuns } from '#responses/runs.ts'
import type { QueuedResponse, ResponseHead } from '#responses/stored.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { type RenderedResponse, renderQueued } from './render.ts'
import { readFrames, waitingLife } from './stored-turn.ts'
import type { Caller, Plan, Turn, TurnDeps } from './turn.ts'

/** A response in the background: accepted, and run when there is room, here or elsewhere. */
export async function queueTurn(
  deps: Pick<TurnDeps, 'log' | 'runs' | 'sealer'>,
  { plan, body, caller }: { plan: Plan; body: unknown; caller: Caller },
): Promise<Turn> {
  const { head, history, parsed } = plan
  const { object, frames, count } = renderQueued({ ...head, echo: parsed.echo })
  const { credential, groups } = caller.principal
  const request: WaitingRequest = { body, groups, requestId: caller.requestId }
  await deps.runs.enqueue({
    ...head,
    keyId: credential.kind === 'api-key' ? credential.keyId : head.ownerId,
    request: deps.sealer.seal('request', head.ownerId, JSON.stringify(request)),
    object,
    segment: { first: 0, last: count - 1, frames },
  })
  return {
    id: head.id,
    streams: parsed.stream,
    source() {
      const { controller } = followSignal(caller.signal)
      const watched = watchFromStart(deps.runs, head, controller.signal)
      const { requestId } = caller
      return readFrames(watched, { controller, requestId, log: deps.log }, waitingLife)
    },
    answer: async (): Promise<RenderedResponse> => object,
    context: () => [...history.items, ...head.input],
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

/** What a request needs to be run without its caller. */
type WaitingRequest = { body: unknown; groups: readonly string[]; requestId: string }

export function readQueued(sealer: Sealer, queued: QueuedResponse): WaitingRequest {
  const plain = sealer.open('request', queued.ownerId, queued.request)
  const request = plain === null ? undefined : parseJson(plain)
  if (!isRecord(request) || !Array.isArray(request['groups'])) {
    throw new Error('a request in the queue cannot be read')
  }
  const { body, groups, requestId } = request
  return { body, groups, requestId: String(requestId) }
}
