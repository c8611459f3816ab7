import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import type { LogEnd } from './event-log.ts'
import { collectItems, countFrames } from './log-segment.ts'
import type { ResponseObject, StoredItem } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { Ending, OrphanedResponse } from './stored.ts'

type RenderTerminalFrames = (object: ResponseObject, nextSequence: number) => string
type EndingStore = Pick<ResponseStore, 'readLog' | 'endInProgress'>

/** Characters per read of a stored log. */
const readCharsMax = 1_048_576

/** Ends a response whose worker died; keeps the items that are complete in its log. */
export async function failOrphan(store: EndingStore, response: OrphanedResponse): Promise<boolean> {
  const output = await readItems(store, response)
  const object = failedObject({ ...response.object, output }, workerLost())
  return store.endInProgress(response.id, { object, segment: null })
}

/** Cancels a response in the database for a worker that does not react, unless its log advanced. */
export async function forceCancel(
  store: EndingStore,
  response: OrphanedResponse,
  render: RenderTerminalFrames,
): Promise<boolean> {
  const object = { ...response.object, output: await readItems(store, response) }
  return store.endInProgress(response.id, endingOf({ ...response, object }, render, null))
}

async function readItems(
  store: EndingStore,
  { id, last }: OrphanedResponse,
): Promise<StoredItem[]> {
  const items = new Map<number, StoredItem>()
  let position = -1
  while (position < last) {
    const segments = await store.readLog(id, position, readCharsMax)
    if (segments.length === 0) break
    for (const segment of segments) {
      collectItems(segment.frames, items)
      position = Math.max(position, segment.last)
    }
  }
  return [...items].sort(([one], [other]) => one - other).map(([, item]) => item)
}

/** How the log of a finished response ends; an orphan's has no terminal frames. */
export function endOfLog(object: ResponseObject): LogEnd {
  const { error } = object
  const wasOrphaned = isRecord(error) && error['code'] === workerLost().wireCode
  return wasOrphaned ? { kind: 'truncated', object } : { kind: 'complete' }
}

/** Ends open streams of a deleted response with an error event. */
export function endOfDeletedLog(object: ResponseObject): LogEnd {
  const error = new AppError('not_found', 'The response was deleted.')
  return { kind: 'truncated', object: failedObject(object, error) }
}

export function workerLost(): AppError {
  return new AppError('worker_lost', 'The worker that ran the response stopped unexpectedly.')
}

/** Ends a response whose log ends at `last`; without an error it is cancelled. */
export function endingOf(
  { object, last }: Pick<OrphanedResponse, 'object' | 'last'>,
  render: RenderTerminalFrames,
  error: AppError | null,
): Ending {
  const ended: ResponseObject =
    error === null ? { ...object, status: 'cancelled' } : failedObject(object, error)
  const frames = render(ended, last + 1)
  return { object: ended, segment: { first: last + 1, last: last + countFrames(frames), frames } }
}

function failedObject(object: ResponseObject, error: AppError): ResponseObject {
  const { wireCode: code, message, type, param } = error
  return { ...object, status: 'failed', error: { code, message, type, param } }
}
