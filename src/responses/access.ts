import { AppError } from '#lib/errors.ts'
import { endingOf, endOfLog, forceCancel, type StreamRendering } from './ending.ts'
import { EventLog } from './event-log.ts'
import {
  type FrameRange,
  type FrameStreamDeps,
  type Frames,
  streamExpired,
  streamFrames,
} from './frame-stream.ts'
import type { RemoteLogReader } from './remote-log-reader.ts'
import { isTerminal, type ResponseObject } from './response.ts'
import type { LocalRun } from './run.ts'
import type { ResponseMessage } from './runs.ts'
import type { ResponseStore } from './store.ts'
import type { FoundResponse } from './stored.ts'
import type { UnstoredResponses } from './unstored.ts'

type AccessDeps = {
  store: ResponseStore
  findRun(id: string): LocalRun | undefined
  remoteLogs: RemoteLogReader
  streaming: FrameStreamDeps
  rendering: StreamRendering
  unstored: UnstoredResponses
  /** Notifies this worker and all others. */
  publish(message: ResponseMessage): void
}

/** Sequence numbers are 32-bit integers in the database. */
const sequenceMax = 2 ** 31 - 2
/** How long `cancel` waits for the worker that runs the response. */
const cancelWaitMaxMs = 10_000
/** After this time the response is cancelled in the database. */
const forceAfterMs = 3_000
const cancelPollMs = 50
/** The notification is repeated after this many polls, because it may be lost. */
const pollsPerNotification = 20

/** Access to responses by id, whichever worker runs them. */
export function createResponseAccess(deps: AccessDeps) {
  const { store, streaming, unstored } = deps
  const findOwnRun = (ownerId: string, id: string) => {
    const run = deps.findRun(id)
    return run?.ownerId === ownerId ? run : undefined
  }
  const findStored = async (ownerId: string, id: string) => {
    try {
      const found = await store.find(ownerId, id)
      if (found === undefined) unstored.refuse(ownerId, id)
      return found
    } catch (error) {
      unstored.refuse(ownerId, id)
      throw error
    }
  }
  return {
    /** The frames after `startingAfter` until the end; undefined: no such response. */
    async watch(
      ownerId: string,
      id: string,
      { startingAfter, signal }: FrameRange,
    ): Promise<Frames | undefined> {
      const range = { startingAfter: Math.min(startingAfter, sequenceMax), signal }
      const found = findOwnRun(ownerId, id) ?? (await findStored(ownerId, id))
      if (found === undefined) return undefined
      // A queued response may have started here during the query.
      const run = findOwnRun(ownerId, id)
      if (run !== undefined) return run.watch(range)
      return 'log' in found
        ? streamFrames({ id, log: await logOf(deps, ownerId, found) }, range, streaming)
        : found.watch(range)
    },

    /** The current object, with its sealed payloads. */
    async find(ownerId: string, id: string): Promise<ResponseObject | undefined> {
      const run = findOwnRun(ownerId, id)
      if (run !== undefined) return run.current()
      return (await findStored(ownerId, id))?.object
    },

    /** Cancels the response on whichever worker runs it; a finished one stays unchanged. */
    async cancel(ownerId: string, id: string): Promise<ResponseObject | undefined> {
      const run = findOwnRun(ownerId, id)
      if (run !== undefined) return run.cancel()
      const found = await findStored(ownerId, id)
      if (found === undefined || isTerminal(found.log.status)) return found?.object
      if (found.log.status === 'queued') {
        const response = { object: found.object, last: found.log.last }
        const ending = endingOf(response, streaming.renderTerminalFrames, { error: null })
        if (await store.endQueued(ownerId, id, ending)) return ending.object
      }
      return cancelRemote(deps, ownerId, id)
    },

    /** Ends the response on whichever worker runs it and deletes it; false: no such response. */
    async remove(ownerId: string, id: string): Promise<boolean> {
      const run = findOwnRun(ownerId, id)
      if (run !== undefined) await run.discard(null)
      const wasStored = await store.remove(ownerId, id)
      if (wasStored) deps.publish({ what: 'deleted', id })
      return wasStored || run !== undefined
    },
  }
}

/** A finished log is read from the database; that of a running response is polled. */
async function logOf(
  { remoteLogs, store, streaming, rendering }: AccessDeps,
  ownerId: string,
  found: FoundResponse,
): Promise<EventLog> {
  if (!isTerminal(found.log.status)) return remoteLogs.subscribe(ownerId, found)
  const { charsMax } = streaming
  if (found.log.last >= 0) {
    const log = new EventLog({ last: found.log.last, charsMax })
    log.end(await endOfLog(store, found, rendering))
    return log
  }
  if (found.isLogExpired) throw streamExpired()
  const log = new EventLog({ last: -1, charsMax })
  log.append(rendering.renderEndedStream(found.object))
  log.end({ kind: 'complete' })
  return log
}

/** Notifies the worker that runs the response and waits; cancels it in the database if need be. */
async function cancelRemote(
  { store, publish, rendering }: AccessDeps,
  ownerId: string,
  id: string,
): Promise<ResponseObject | undefined> {
  const startedAt = performance.now()
  for (let poll = 0; performance.now() - startedAt < cancelWaitMaxMs; poll++) {
    if (poll % pollsPerNotification === 0) publish({ what: 'cancel', id })
    await Bun.sleep(cancelPollMs)
    const found = await store.find(ownerId, id)
    if (found === undefined || isTerminal(found.log.status)) return found?.object
    if (performance.now() - startedAt > forceAfterMs) {
      const { object, log } = found
      await forceCancel(store, { id, object, last: log.last }, rendering)
    }
  }
  throw new AppError('service_unavailable', 'The response could not be cancelled yet; retry.', {
    retryAfterS: 1,
  })
}
