import { AppError } from '#lib/errors.ts'
import { repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { endAsDeleted, endOfLog } from './lost.ts'
import { isOver } from './response.ts'
import type { ResponseStore } from './store.ts'
import type { FoundResponse, LogProgress } from './stored.ts'

/**
 * The logs of responses that run in other processes, or wait for their turn, as far as somebody
 * here reads them: one question for all of them at a time, and one for each that has gone on.
 */
export type Tails = {
  /** The log that follows this response; it begins where the log in the database ends now. */
  follow(ownerId: string, found: FoundResponse): EventLog
  /** Follows no longer what begins to run here, if this is all there is of its log. */
  adopt(id: string, last: number): EventLog | undefined
  close(): Promise<void>
}

type Tail = { readonly ownerId: string; readonly found: FoundResponse; readonly log: EventLog }

const pollMs = 200
/** Responses that one question asks for. */
const idsPerQuestionMax = 1_000
/** Logs that are read at the same time. */
const readsAtOnce = 4

export function createTails(deps: {
  store: Pick<ResponseStore, 'progress' | 'readLog' | 'find'>
  charsMax: number
  /** How long readers wait for a database that is away. */
  patienceMs: number
  log: Pick<Log, 'warn'>
}): Tails {
  const tails = new Map<string, Tail>()
  let askedWellAt = performance.now()

  const polling = repeat(
    async () => {
      for (const [id, { log }] of tails) if (log.readers() === 0) tails.delete(id)
      try {
        await poll()
        askedWellAt = performance.now()
      } catch (error) {
        if (performance.now() - askedWellAt > deps.patienceMs) giveUp()
        throw error
      }
    },
    { everyMs: pollMs, log: deps.log, failed: 'the streams of other processes cannot be read' },
  )

  async function poll() {
    const ids = [...tails.keys()]
    for (let at = 0; at < ids.length; at += idsPerQuestionMax) {
      const asked = ids.slice(at, at + idsPerQuestionMax)
      const answers = await deps.store.progress(asked)
      const progress = new Map(answers.map((answer) => [answer.id, answer]))
      for (let from = 0; from < asked.length; from += readsAtOnce) {
        const some = asked.slice(from, from + readsAtOnce)
        await Promise.all(some.map((id) => advance(id, progress.get(id))))
      }
    }
  }

  async function advance(id: string, progress: LogProgress | undefined) {
    const tail = tails.get(id)
    if (tail === undefined) return
    const { log, found, ownerId } = tail
    if (progress !== undefined && progress.last > log.last()) {
      await readUpTo(tail, progress.last)
      if (tails.get(id) !== tail) return
    }
    if (progress !== undefined && !isOver(progress.status)) return
    const ended = progress && (await deps.store.find(ownerId, id))
    if (!tails.delete(id)) return
    if (ended === undefined) endAsDeleted(log, found.object)
    else log.end(endOfLog(ended.object))
  }

  async function readUpTo({ found, log }: Tail, last: number) {
    const { id } = found.log
    while (log.last() < last) {
      const segments = await deps.store.readLog(id, log.last(), deps.charsMax)
      // In the meantime it was adopted.
      if (!tails.has(id)) return
      const fresh = segments.filter((segment) => segment.first > log.last())
      if (fresh.length === 0) return
      for (const segment of fresh) {
        log.keptUpTo(segment.last)
        log.append(segment)
      }
    }
  }

  function giveUp() {
    const error = new AppError('service_unavailable', 'The stream cannot be read just now.', {
      retryAfterS: 1,
    })
    for (const { log } of tails.values()) log.end({ kind: 'failed', error })
    tails.clear()
  }

  return {
    follow(ownerId, found) {
      const known = tails.get(found.log.id)
      if (known !== undefined) return known.log
      const log = createEventLog({ last: found.log.last, charsMax: deps.charsMax })
      tails.set(found.log.id, { ownerId, found, log })
      return log
    },
    adopt(id, last) {
      const log = tails.get(id)?.log
      if (log?.last() !== last) return undefined
      tails.delete(id)
      return log
    },
    async close() {
      await polling.stop()
      giveUp()
    },
  }
}
