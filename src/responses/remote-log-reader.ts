import { AppError } from '#lib/errors.ts'
import { repeat } from '#lib/repeat.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { endOfDeletedLog, endOfLog, type LogRendering } from './ending.ts'
import { EventLog } from './event-log.ts'
import { isTerminal } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { FoundResponse, LogProgress } from './stored.ts'

type Subscription = {
  readonly ownerId: string
  readonly found: FoundResponse
  readonly log: EventLog
}

const pollMs = 200
/** A database that hangs fails a poll like one that refuses. */
const pollTimeoutMs = 5_000
const idsPerQueryMax = 1_000
const concurrentReads = 4

export type RemoteLogReader = ReturnType<typeof createRemoteLogReader>

/**
 * Polls the event logs of responses that are queued or run on other workers, for subscribers on
 * this worker. One query checks the progress of all of them; one more per response fetches new
 * frames.
 */
export function createRemoteLogReader(deps: {
  store: ResponseStore
  rendering: LogRendering
  charsMax: number
  /** How long subscribers wait for an unavailable database. */
  outageMaxMs: number
  log: Log
}) {
  const subscriptions = new Map<string, Subscription>()
  let lastSuccessAt = performance.now()

  const polling = repeat(
    async () => {
      for (const [id, { log }] of subscriptions) if (log.readers === 0) subscriptions.delete(id)
      try {
        await withTimeLimit(poll(), pollTimeoutMs, () => new Error('a poll took too long'))
        lastSuccessAt = performance.now()
      } catch (error) {
        if (performance.now() - lastSuccessAt > deps.outageMaxMs) failAll()
        throw error
      }
    },
    { everyMs: pollMs, log: deps.log, failed: 'remote log poll failed' },
  )

  async function poll() {
    const ids = [...subscriptions.keys()]
    for (let at = 0; at < ids.length; at += idsPerQueryMax) {
      const batch = ids.slice(at, at + idsPerQueryMax)
      const rows = await deps.store.progress(batch)
      const progress = new Map(rows.map((row) => [row.id, row]))
      for (let from = 0; from < batch.length; from += concurrentReads) {
        const some = batch.slice(from, from + concurrentReads)
        await Promise.all(some.map((id) => advance(id, progress.get(id))))
      }
    }
  }

  async function advance(id: string, progress: LogProgress | undefined) {
    const subscription = subscriptions.get(id)
    if (subscription === undefined) return
    const { log, found, ownerId } = subscription
    if (progress !== undefined && progress.last > log.last) {
      await readUpTo(subscription, progress.last)
    }
    if (progress !== undefined && !isTerminal(progress.status)) return
    const ended = progress && (await deps.store.find(ownerId, id))
    const end = ended
      ? await endOfLog(deps.store, ended, deps.rendering)
      : endOfDeletedLog(found.object)
    // Meanwhile the response may have started here, or an outage may have ended this subscription.
    if (subscriptions.get(id) !== subscription) return
    subscriptions.delete(id)
    log.end(end)
  }

  async function readUpTo({ found, log }: Subscription, last: number) {
    const { id } = found.log
    while (log.last < last) {
      const segments = await deps.store.readLog(id, log.last, deps.charsMax)
      // The response may have started here during the query.
      if (!subscriptions.has(id)) return
      const added = segments.filter((segment) => segment.first > log.last)
      if (added.length === 0) return
      for (const segment of added) {
        log.persistedUpTo(segment.last)
        log.append(segment)
      }
    }
  }

  function failAll() {
    const error = new AppError(
      'service_unavailable',
      'The event log is temporarily unavailable; retry.',
      { retryAfterS: 1 },
    )
    for (const { log } of subscriptions.values()) log.end({ kind: 'failed', error })
    subscriptions.clear()
  }

  return {
    /** The log of this response from its current end in the database on. */
    subscribe(ownerId: string, found: FoundResponse): EventLog {
      const known = subscriptions.get(found.log.id)
      if (known !== undefined) return known.log
      const log = new EventLog({ last: found.log.last, charsMax: deps.charsMax })
      subscriptions.set(found.log.id, { ownerId, found, log })
      return log
    },
    /** Hands over the log of a response that starts here, if it is up to date. */
    takeOver(id: string, last: number): EventLog | undefined {
      const log = subscriptions.get(id)?.log
      if (log?.last !== last) return undefined
      subscriptions.delete(id)
      return log
    },
    async close() {
      await polling.stop()
      failAll()
    },
  }
}
