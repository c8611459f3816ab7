import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import {
  type Entry,
  type EntryOptions,
  failEntry,
  newEntry,
  type Outcome,
  recordWritten,
  writeOf,
} from './journal-entry.ts'
import type { ResponseStore } from './store.ts'
import type { Ending, LogSegment } from './stored.ts'

export type Journal = ReturnType<typeof createJournal>
export type JournalEntry = ReturnType<Journal['open']>

const writeTimeoutMs = { min: 1_000, max: 5_000 }
/** Backoff after a failed write. */
const backoffMinMs = 50
const backoffMaxMs = 1_000
/** Frames per write; the rest goes into the next one. */
const writeCharsMax = 1_048_576

/** A database that hangs: smaller writes would hang too. */
class WriteTimeout extends Error {
  override readonly name = 'WriteTimeout'
}

type JournalDeps = {
  store: ResponseStore
  flushMs: number
  /** How long a response waits for an unavailable database. */
  outageMaxMs: number
  /** A response with this many characters does not wait for the next flush. */
  urgentChars: number
  log: Log
}

/**
 * Group commit for all running responses: writes of many responses share one statement, one
 * statement at a time. What arrives during a write goes into the next one. Ends do not wait for
 * the frames of other responses, which are written every `flushMs`.
 */
export function createJournal(deps: JournalDeps) {
  /** Entries with something to write, in order of arrival. */
  const pending = new Set<Entry>()
  const writer = createWriter(deps, pending)
  let timer: ReturnType<typeof setTimeout> | undefined
  let turn: ReturnType<typeof setImmediate> | undefined
  let flushing: Promise<void> | undefined

  function flush() {
    clearImmediate(turn)
    turn = undefined
    flushing ??= writer.drain().finally(() => {
      flushing = undefined
      if (writer.isUrgent()) flush()
    })
  }
  /** After the events of this turn of the loop: responses often end together. */
  function flushSoon() {
    turn ??= setImmediate(flush)
  }
  function flushLater() {
    timer ??= setTimeout(() => {
      timer = undefined
      writer.writeAll()
      flush()
    }, deps.flushMs)
  }
  return {
    open(options: EntryOptions) {
      const entry = newEntry(options)
      return {
        append(segment: LogSegment) {
          if (entry.state !== 'open') return
          entry.segments.push(segment)
          entry.chars += segment.frames.length
          pending.add(entry)
          if (entry.chars >= deps.urgentChars) flush()
          else flushLater()
        },
        end(ending: Ending): Promise<Outcome> {
          if (entry.state !== 'open') return Promise.resolve('unstored')
          pending.add(entry)
          const { promise, resolve } = Promise.withResolvers<Outcome>()
          const { id, ownerId, conversationId } = entry
          entry.ending = { ended: { id, ownerId, conversationId, ...ending }, settle: resolve }
          flushSoon()
          return promise
        },
        /** Drops pending writes; resolves when none is in flight. */
        async discard() {
          entry.state = 'discarded'
          pending.delete(entry)
          entry.ending?.settle('unstored')
          await writer.inFlight()
        },
        /** Whether the database holds this response. */
        isStored: () => entry.opened === null,
      }
    },
    /** Writes what is pending, or gives up after the outage limit. */
    async close() {
      while (pending.size > 0 || flushing !== undefined) {
        writer.writeAll()
        flush()
        await flushing
      }
      clearTimeout(timer)
    },
  }
}

function createWriter({ store, log, urgentChars, outageMaxMs }: JournalDeps, pending: Set<Entry>) {
  let failingSince: number | null = null
  let inFlight: Promise<void> | undefined
  /** The frames of all responses are due, not only urgent entries. */
  let isDue = false

  /** The last attempt of an outage ends with it, however long a write hangs. */
  function timeoutMs(startedAt: number): number {
    const leftMs = (failingSince ?? startedAt) + outageMaxMs - startedAt
    return Math.max(writeTimeoutMs.min, Math.min(leftMs, writeTimeoutMs.max))
  }

  async function write(group: readonly Entry[], startedAt: number): Promise<void> {
    const writes = group.map((entry) => ({ id: entry.id, ...writeOf(entry) }))
    const written = withTimeLimit(
      store.write({
        opened: writes.flatMap(({ opened }) => opened ?? []),
        logged: writes.flatMap(({ id, segment }) => (segment === null ? [] : { id, segment })),
        ended: writes.flatMap(({ ended }) => ended ?? []),
      }),
      timeoutMs(startedAt),
      () => new WriteTimeout('a write took too long'),
    )
    inFlight = written.then(
      () => {},
      () => {},
    )
    const refused = await written.catch((error: unknown) => {
      failingSince ??= startedAt
      throw error
    })
    failingSince = null
    for (const entry of group) recordWritten(entry, pending, refused)
  }

  /**
   * Isolates an entry that the database rejects from the others. Stops after two failures, which
   * indicate an outage.
   */
  async function writeOneByOne(group: readonly Entry[]): Promise<void> {
    let failures = 0
    for (const entry of group) {
      if (failures === 2) return
      if (entry.state !== 'open') continue
      const startedAt = performance.now()
      try {
        await write([entry], startedAt)
      } catch (error) {
        failures += 1
        recordFailure(entry, startedAt, error)
        moveToBack(entry)
      }
    }
  }

  function recordFailure(entry: Entry, startedAt: number, error: unknown) {
    if (entry.state !== 'open') return
    entry.failingSince ??= startedAt
    if (performance.now() - entry.failingSince >= outageMaxMs) giveUp(entry, error)
  }

  /** So that the next attempt starts with another entry. */
  function moveToBack(entry: Entry) {
    if (pending.delete(entry)) pending.add(entry)
  }

  function giveUp(entry: Entry, error: unknown) {
    failEntry(entry, pending)
    log.error('response not stored', { response_id: entry.id, error })
  }

  /** No write has succeeded for so long that all entries would fail, one after the other. */
  function isOutage() {
    return failingSince !== null && performance.now() - failingSince >= outageMaxMs
  }

  function isUrgent() {
    return isDue || pending.values().some(isEntryUrgent)
  }
  function isEntryUrgent({ ending, write, chars }: Entry) {
    return ending !== null || write !== null || chars >= urgentChars
  }

  /** The ends first, then the long frames, or all frames if they are due. */
  function takeGroup(): Entry[] {
    const group: Entry[] = []
    let chars = 0
    for (const isEnd of [true, false]) {
      for (const entry of pending) {
        if ((entry.ending !== null) !== isEnd || !(isDue || isEntryUrgent(entry))) continue
        group.push(entry)
        const { segment, ended } = writeOf(entry)
        chars += (segment?.frames.length ?? 0) + (ended?.segment?.frames.length ?? 0)
        if (chars >= writeCharsMax) return group
      }
    }
    isDue = false
    return group
  }

  return {
    /** Whether something waits for a write: ends, retries, long frames, or all frames. */
    isUrgent,
    /** The next writes hold the frames of all responses. */
    writeAll() {
      isDue = true
    },
    inFlight: async () => inFlight,
    /** Writes until nothing is urgent. */
    async drain() {
      let backoffMs = backoffMinMs
      do {
        const group = takeGroup()
        if (group.length === 0) return
        const startedAt = performance.now()
        try {
          await write(group, startedAt)
          backoffMs = backoffMinMs
        } catch (error) {
          const mayBeOne = group.length > 1 && !(error instanceof WriteTimeout)
          if (mayBeOne) await writeOneByOne(group)
          else group.forEach(moveToBack)
          for (const entry of group) {
            if (entry.write !== null) recordFailure(entry, startedAt, error)
          }
          if (isOutage()) for (const entry of [...pending]) giveUp(entry, error)
          await new Promise((resolve) => setTimeout(resolve, backoffMs))
          backoffMs = Math.min(2 * backoffMs, backoffMaxMs)
        }
      } while (isUrgent())
    },
  }
}
