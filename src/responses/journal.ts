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
import type { Ending } from './stored.ts'

export type Journal = ReturnType<typeof createJournal>
export type JournalEntry = ReturnType<Journal['open']>

const writeTimeoutMs = { min: 1_000, max: 5_000 }
/** Backoff after a failed write. */
const backoffMinMs = 50
const backoffMaxMs = 1_000
/** Frames per write; the rest goes into the next one. */
const writeCharsMax = 1_048_576
/** Running responses per write of their frames: if one of them ends, it waits for that write. */
const runningPerWriteMax = 128

/** A database that hangs: smaller writes would hang too. */
class WriteTimeout extends Error {
  override readonly name = 'WriteTimeout'
}

type JournalDeps = {
  store: ResponseStore
  flushMs: number
  /** How long a response waits for an unavailable database. */
  outageMaxMs: number
  log: Log
}

/**
 * Group commit for all running responses: writes of many responses share one statement. There are
 * two such writes at a time, of different responses: one of ends, of rows that clients wait for and of
 * what is repeated, and one of the frames that are due every `flushMs`, so that ends do not wait for
 * the frames of others. What arrives during a write goes into the next one.
 */
export function createJournal(deps: JournalDeps) {
  /** Entries with something to write, in order of arrival. */
  const pending = new Set<Entry>()
  const writer = createWriter(deps, pending)
  let timer: ReturnType<typeof setTimeout> | undefined
  let turn: ReturnType<typeof setImmediate> | undefined
  let flushing: Promise<void> | undefined
  let flushingFrames: Promise<void> | undefined

  function flush() {
    clearImmediate(turn)
    turn = undefined
    flushing ??= writer.drain().finally(() => {
      flushing = undefined
      if (writer.isUrgent()) flush()
    })
  }
  /** After the events of this turn of the loop: responses often begin or end together. */
  function flushSoon() {
    turn ??= setImmediate(flush)
  }
  function flushFrames() {
    const flushEnds = () => writer.isUrgent() && flush()
    flushingFrames ??= writer.writeFrames(flushEnds).finally(() => {
      flushingFrames = undefined
      if (pending.size > 0) flushLater()
    })
  }
  function flushLater() {
    timer ??= setTimeout(() => {
      timer = undefined
      flushFrames()
    }, deps.flushMs)
  }
  return {
    open(options: EntryOptions) {
      const entry = newEntry(options)
      return {
        /** There are frames to write, or so many that their write is urgent. */
        writeSoon() {
          if (entry.state !== 'open') return
          pending.add(entry)
          if (entry.frames.isUrgent) flush()
          else flushLater()
        },
        /** Writes the row and the first frames at once: a client waits for them. */
        openSoon() {
          if (entry.state !== 'open' || entry.opened === null) return
          entry.isOpeningAwaited = true
          flushSoon()
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
        flushFrames()
        await flushingFrames
        flush()
        await flushing
      }
      clearTimeout(timer)
    },
  }
}

function createWriter({ store, log, outageMaxMs }: JournalDeps, pending: Set<Entry>) {
  let failingSince: number | null = null
  const inFlight = new Set<Promise<unknown>>()

  /** The last attempt of an outage ends with it, however long a write hangs. */
  function timeoutMs(startedAt: number): number {
    const leftMs = (failingSince ?? startedAt) + outageMaxMs - startedAt
    return Math.max(writeTimeoutMs.min, Math.min(leftMs, writeTimeoutMs.max))
  }

  async function write(group: readonly Entry[], startedAt: number): Promise<void> {
    const writes = group.map((entry) => ({ id: entry.id, ...writeOf(entry) }))
    for (const entry of group) entry.isInFlight = true
    const written = withTimeLimit(
      store.write({
        opened: writes.flatMap(({ opened }) => opened ?? []),
        logged: writes.flatMap(({ id, segment }) => (segment === null ? [] : { id, segment })),
        ended: writes.flatMap(({ ended }) => ended ?? []),
      }),
      timeoutMs(startedAt),
      () => new WriteTimeout('a write took too long'),
    )
    inFlight.add(written)
    const refused = await written
      .catch((error: unknown) => {
        failingSince ??= startedAt
        throw error
      })
      .finally(() => {
        for (const entry of group) entry.isInFlight = false
        inFlight.delete(written)
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
      try {
        await write([entry], performance.now())
      } catch {
        failures += 1
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
    return pending.values().some(isEntryUrgent)
  }
  /** It begins or ends, or has long frames, or its last write failed. */
  function isEntryUrgent({ opened, isOpeningAwaited, ending, write, frames, isInFlight }: Entry) {
    if (isInFlight) return false
    if (isOpeningAwaited && opened !== null) return true
    return ending !== null || write !== null || frames.isUrgent
  }
  const isEntryDue = (entry: Entry) => !entry.isInFlight && !isEntryUrgent(entry)

  /** The first of these entries, up to the size of a write; ends come first. */
  function takeGroup(entries: readonly Entry[]): Entry[] {
    const group: Entry[] = []
    let chars = 0
    for (const isEnd of [true, false]) {
      for (const entry of entries) {
        if ((entry.ending !== null) !== isEnd) continue
        group.push(entry)
        const { segment, ended } = writeOf(entry)
        chars += (segment?.frames.length ?? 0) + (ended?.segment?.frames.length ?? 0)
        if (chars >= writeCharsMax) return group
      }
    }
    return group
  }

  return {
    isUrgent,
    inFlight: () => Promise.allSettled(inFlight),
    /**
     * Writes all frames that nothing else writes. After a failure they are urgent, and further ones
     * wait for them.
     */
    async writeFrames(afterWrite: () => void) {
      const due = [...pending.values().filter(isEntryDue)]
      while (due.length > 0 && (failingSince === null || !isUrgent())) {
        const group = takeGroup(due.splice(0, runningPerWriteMax).filter(isEntryDue))
        const startedAt = performance.now()
        try {
          if (group.length > 0) await write(group, startedAt)
        } catch (error) {
          for (const entry of group) recordFailure(entry, startedAt, error)
        }
        afterWrite()
      }
    },
    /** Writes until nothing is urgent. */
    async drain() {
      let backoffMs = backoffMinMs
      do {
        const group = takeGroup([...pending.values().filter(isEntryUrgent)])
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
