import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import type { LogEnd } from './event-log.ts'
import { countFrames } from './log-segment.ts'
import type { ResponseObject, StoredItem } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { Ending, FoundResponse, LogSegment, OrphanedResponse } from './stored.ts'
import { notStoredCode } from './unstored.ts'

type RenderTerminalFrames = (object: ResponseObject, nextSequence: number) => string
type EndingStore = Pick<ResponseStore, 'readLog' | 'endInProgress'>

/** Rebuilds the output of a response from its logged frames; implemented by the surface. */
export type LogReplay = {
  add(frames: string): void
  /** The frames, from this sequence number on, that end an open item as incomplete. */
  close(nextSequence: number): string
  /** The ended items. */
  output(): StoredItem[]
}

/** How the surface continues the log of a response whose worker is gone. */
export type LogRendering = {
  /** Terminal frames, from this number on, of a response whose log has none. */
  readonly renderTerminalFrames: RenderTerminalFrames
  readonly replayLog: () => LogReplay
}

export type StreamRendering = LogRendering & {
  /** The whole stream of an ended response that was created without one. */
  readonly renderEndedStream: (object: ResponseObject) => LogSegment
}

/** Characters per read of a stored log. */
const readCharsMax = 1_048_576

/**
 * Fails a response that no worker runs, with the output in its log. False if the log advanced meanwhile:
 * the worker is alive. The log gets no terminal frames, because a client may have received frames that
 * were never logged: `endOfLog` renders them for each reader.
 */
export async function failOrphan(
  store: EndingStore,
  response: OrphanedResponse,
  { rendering, error }: { rendering: LogRendering; error: AppError },
): Promise<boolean> {
  const { output } = await replay(store, response, rendering)
  const object = failedObject({ ...response.object, output }, error)
  return store.endInProgress(response, { object, segment: null })
}

/** Cancels a response in the database for a worker that does not react, unless its log advanced. */
export async function forceCancel(
  store: EndingStore,
  response: OrphanedResponse,
  rendering: LogRendering,
): Promise<boolean> {
  const { output, closing } = await replay(store, response, rendering)
  const rebuilt = { object: { ...response.object, output }, last: response.last }
  const ending = endingOf(rebuilt, rendering.renderTerminalFrames, { error: null, closing })
  return store.endInProgress(response, ending)
}

/** The output in a log that ends at `last`, and the frames that end its open item. */
async function replay(
  store: Pick<ResponseStore, 'readLog'>,
  { id, last }: Pick<OrphanedResponse, 'id' | 'last'>,
  { replayLog }: Pick<LogRendering, 'replayLog'>,
): Promise<{ output: StoredItem[]; closing: string }> {
  const items = replayLog()
  let position = -1
  while (position < last) {
    const segments = await store.readLog(id, position, readCharsMax)
    if (segments.length === 0) break
    for (const segment of segments) {
      items.add(segment.frames)
      position = Math.max(position, segment.last)
    }
  }
  const closing = items.close(last + 1)
  return { output: items.output(), closing }
}

/** How the log of a finished response ends. That of an orphan has no terminal frames. */
export async function endOfLog(
  store: Pick<ResponseStore, 'readLog'>,
  { object, log }: Pick<FoundResponse, 'object' | 'log'>,
  rendering: Pick<LogRendering, 'replayLog'>,
): Promise<LogEnd> {
  const { error } = object
  const code = isRecord(error) ? error['code'] : undefined
  if (code !== workerLost().wireCode && code !== notStoredCode) return { kind: 'complete' }
  const { closing } = await replay(store, log, rendering)
  return { kind: 'truncated', object, closing }
}

/** Ends open streams of a deleted response with an error event. */
export function endOfDeletedLog(object: ResponseObject): LogEnd {
  const error = new AppError('not_found', 'The response was deleted.')
  return { kind: 'truncated', object: failedObject(object, error), closing: '' }
}

export function workerLost(): AppError {
  return new AppError('worker_lost', 'The worker that ran the response stopped unexpectedly.')
}

/** Ends a response whose log ends at `last`; without an error it is cancelled. */
export function endingOf(
  { object, last }: Pick<OrphanedResponse, 'object' | 'last'>,
  render: RenderTerminalFrames,
  { error, closing = '' }: { error: AppError | null; closing?: string },
): Ending {
  const ended: ResponseObject =
    error === null ? { ...object, status: 'cancelled' } : failedObject(object, error)
  const frames = closing + render(ended, last + 1 + countFrames(closing))
  return { object: ended, segment: { first: last + 1, last: last + countFrames(frames), frames } }
}

function failedObject(object: ResponseObject, error: AppError): ResponseObject {
  const { wireCode: code, message, type, param } = error
  return { ...object, status: 'failed', error: { code, message, type, param } }
}
