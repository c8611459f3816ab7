import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import type { EventLog, LogEnd } from './event-log.ts'
import { collectItems, countFrames } from './log-segment.ts'
import type { ResponseObject, StoredItem } from './response.ts'
import type { ResponseStore } from './store.ts'

/** What is read of a log at a time. */
const readCharsMax = 1_048_576

/** The object of a response that could not go on. */
export function failedObject(object: ResponseObject, error: AppError): ResponseObject {
  const { wireCode: code, message, type, param } = error
  return { ...object, status: 'failed', error: { code, message, type, param } }
}

type Unended = { readonly id: string; readonly object: ResponseObject; readonly last: number }
type EndingStore = Pick<ResponseStore, 'readLog' | 'endLost'>

/** Ends what no process runs any more; keeps the items whose last frame is in the log. */
export async function endAsLost(store: EndingStore, response: Unended): Promise<boolean> {
  const output = await readItems(store, response)
  const object = failedObject({ ...response.object, output }, workerLost())
  return store.endLost(response.id, { object, segment: null })
}

/** Ends what its process does not end; not where its log has gone on in the meantime. */
export async function endAsCancelled(
  store: EndingStore,
  response: Unended,
  renderEnd: (object: ResponseObject, nextSequence: number) => string,
): Promise<boolean> {
  const output = await readItems(store, response)
  const object: ResponseObject = { ...response.object, status: 'cancelled', output }
  const first = response.last + 1
  const frames = renderEnd(object, first)
  const segment = { first, last: response.last + countFrames(frames), frames }
  return store.endLost(response.id, { object, segment })
}

async function readItems(store: EndingStore, { id, last }: Unended): Promise<StoredItem[]> {
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

/** How the log of a response ends that is over; one that was lost has no terminal frames. */
export function endOfLog(object: ResponseObject): LogEnd {
  const { error } = object
  const wasLost = isRecord(error) && error['code'] === workerLost().wireCode
  return wasLost ? { kind: 'broken', object } : { kind: 'complete' }
}

/** Tells whoever still reads of a response that it was deleted. */
export function endAsDeleted(log: EventLog, object: ResponseObject): void {
  const error = new AppError('not_found', 'The response was deleted.')
  log.end({ kind: 'broken', object: failedObject(object, error) })
}

export function workerLost(): AppError {
  return new AppError('worker_lost', 'The response was lost before its end was stored.')
}
