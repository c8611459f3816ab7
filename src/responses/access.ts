import { awaitEnd, findSoon, type Message } from './elsewhere.ts'
import { createEventLog } from './event-log.ts'
import { endRenderer } from './failing-job.ts'
import { type FollowDeps, follow, streamGone } from './follow.ts'
import type { LocalRuns } from './local-runs.ts'
import { endAsCancelled, endOfLog } from './lost.ts'
import { isOver } from './response.ts'
import type { ResponseRuns } from './runs.ts'
import type { ResponseStore } from './store.ts'
import type { FoundResponse } from './stored.ts'
import type { Tails } from './tails.ts'

type AccessDeps = {
  store: ResponseStore
  local: Pick<LocalRuns, 'get'>
  tails: Pick<Tails, 'follow'>
  following: FollowDeps
  /** Tells this process, and all others. */
  tell(message: Message): void
  /** How long what another process begins may take to be in the database. */
  lagMs: number
}

/** Sequence numbers are 32-bit integers in the database. */
const sequenceMax = 2 ** 31 - 2

/** What a caller may do with a response by its id, wherever it runs. */
export function createAccess(
  deps: AccessDeps,
): Pick<ResponseRuns, 'watch' | 'find' | 'cancel' | 'remove'> {
  const { store, lagMs, following } = deps
  const ownRun = (ownerId: string, id: string) => {
    const run = deps.local.get(id)
    return run?.ownerId === ownerId ? run : undefined
  }
  return {
    async watch(ownerId, id, { startingAfter, signal }) {
      const from = { startingAfter: Math.min(startingAfter, sequenceMax), signal }
      const found = ownRun(ownerId, id) ?? (await findSoon(store, { ownerId, id }, lagMs))
      if (found === undefined) return undefined
      // It may have begun to run here while the database was asked.
      const run = ownRun(ownerId, id)
      if (run !== undefined) return run.watch(from)
      return 'log' in found
        ? follow({ id, log: logOf(deps, ownerId, found) }, from, following)
        : found.watch(from)
    },

    async find(ownerId, id) {
      const run = ownRun(ownerId, id)
      if (run !== undefined) return run.current()
      return (await findSoon(store, { ownerId, id }, lagMs))?.object
    },

    async cancel(ownerId, id) {
      const run = ownRun(ownerId, id)
      if (run !== undefined) return run.cancel()
      const found = await findSoon(store, { ownerId, id }, lagMs)
      if (found === undefined || isOver(found.log.status)) return found?.object
      if (found.log.status === 'queued') {
        const cancelled = await cancelQueued(store, { ownerId, found }, following)
        if (cancelled !== undefined) return cancelled
      }
      return awaitEnd(() => store.find(ownerId, id), {
        tell: () => deps.tell({ what: 'cancel', id }),
        force: ({ object, log }) =>
          endAsCancelled(store, { id, object, last: log.last }, following.renderTerminalFrames),
      })
    },

    async remove(ownerId, id) {
      const run = ownRun(ownerId, id)
      if (run !== undefined) await run.forget(null)
      const wasStored = await removeSoon(store, { ownerId, id }, run === undefined ? lagMs : 0)
      if (wasStored) deps.tell({ what: 'deleted', id })
      return wasStored || run !== undefined
    },
  }
}

/** What is over is read from the database as it is; what goes on is followed. */
function logOf({ tails, following }: AccessDeps, ownerId: string, found: FoundResponse) {
  if (!isOver(found.log.status)) return tails.follow(ownerId, found)
  if (found.log.last < 0) throw streamGone()
  const log = createEventLog({ last: found.log.last, charsMax: following.charsMax })
  log.end(endOfLog(found.object))
  return log
}

/** Undefined where it is not queued any more. */
async function cancelQueued(
  store: Pick<ResponseStore, 'endQueued'>,
  { ownerId, found }: { ownerId: string; found: FoundResponse },
  { renderTerminalFrames }: FollowDeps,
) {
  const { id, last } = found.log
  const renderer = endRenderer({ object: found.object, last }, renderTerminalFrames)
  const frames = renderer.cancel()
  const segment = { first: last + 1, last: renderer.nextSequence() - 1, frames }
  const object = renderer.stored()
  return (await store.endQueued(ownerId, id, { object, segment })) ? object : undefined
}

async function removeSoon(
  store: Pick<ResponseStore, 'remove'>,
  { ownerId, id }: { ownerId: string; id: string },
  waitMs: number,
): Promise<boolean> {
  const removed = await store.remove(ownerId, id)
  if (removed || waitMs === 0) return removed
  await Bun.sleep(waitMs)
  return store.remove(ownerId, id)
}
