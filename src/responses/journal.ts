import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { joinSegments } from './log-segment.ts'
import type { ResponseStore } from './store.ts'
import type { EndedResponse, Ending, LogSegment, OpenedResponse } from './stored.ts'

export type Journal = ReturnType<typeof createJournal>
export type JournalEntry = ReturnType<Journal['open']>

type EntryOptions = {
  readonly id: string
  /** Part of the first write; null if the response is in the database. */
  readonly opened: OpenedResponse | null
  /** Frames up to this number are in the database. */
  onWritten(last: number): void
  /** The database was unavailable for too long: nothing more of this response is written. */
  onFailed(): void
}

/** `refused`: another worker has ended the response in another way. */
type Outcome = 'stored' | 'unstored' | 'refused'

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

/** The part of an entry that one write holds; repeated unchanged while its outcome is unknown. */
type EntryWrite = {
  readonly opened: OpenedResponse | null
  readonly segment: LogSegment | null
  readonly ended: EndedResponse | null
}

type Entry = EntryOptions & {
  opened: OpenedResponse | null
  segments: LogSegment[]
  /** Characters of the segments. */
  chars: number
  ending: { readonly ended: EndedResponse; settle(outcome: Outcome): void } | null
  write: EntryWrite | null
  failingSince: number | null
  state: 'open' | 'failed' | 'discarded'
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
 * Group commit for all running responses: writes of many responses share one transaction, one
 * transaction at a time. What arrives during a write goes into the next one.
 */
export function createJournal(deps: JournalDeps) {
  /** Entries with something to write, in order of arrival. */
  const pending = new Set<Entry>()
  const writer = createWriter(deps, pending)
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing: Promise<void> | undefined

  function flush() {
    clearTimeout(timer)
    timer = undefined
    flushing ??= writer.drainUrgent().finally(() => {
      flushing = undefined
      if (writer.isUrgent()) flush()
      else if (pending.size > 0) flushLater()
    })
  }
  function flushLater() {
    timer ??= setTimeout(flush, deps.flushMs)
  }
  return {
    open(options: EntryOptions) {
      const entry: Entry = {
        ...options,
        segments: [],
        chars: 0,
        ending: null,
        write: null,
        failingSince: null,
        state: 'open',
      }
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
          entry.ending = { ended: { id: entry.id, ...ending }, settle: resolve }
          flush()
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
    fail(entry, pending)
    log.error('response not stored', { response_id: entry.id, error })
  }

  /** No write has succeeded for so long that all entries would fail, one after the other. */
  function isOutage() {
    return failingSince !== null && performance.now() - failingSince >= outageMaxMs
  }

  function isUrgent() {
    for (const { ending, write, chars } of pending) {
      if (ending !== null || write !== null || chars >= urgentChars) return true
    }
    return false
  }

  return {
    isUrgent,
    inFlight: async () => inFlight,
    /** Writes until no entry waits for its end or a retry. */
    async drainUrgent() {
      let backoffMs = backoffMinMs
      do {
        const group = takeGroup(pending)
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

function takeGroup(pending: ReadonlySet<Entry>): Entry[] {
  const group: Entry[] = []
  let chars = 0
  for (const entry of pending) {
    group.push(entry)
    const { segment, ended } = writeOf(entry)
    chars += (segment?.frames.length ?? 0) + (ended?.segment?.frames.length ?? 0)
    if (chars >= writeCharsMax) break
  }
  return group
}

function writeOf(entry: Entry): EntryWrite {
  if (entry.write !== null) return entry.write
  entry.write = {
    opened: entry.opened,
    segment: joinSegments(entry.segments),
    ended: entry.ending?.ended ?? null,
  }
  entry.segments = []
  entry.chars = 0
  return entry.write
}

function recordWritten(entry: Entry, pending: Set<Entry>, refused: ReadonlySet<string>): void {
  const { write } = entry
  if (write === null || entry.state !== 'open') return
  entry.write = null
  entry.opened = null
  entry.failingSince = null
  if (write.segment !== null) entry.onWritten(write.segment.last)
  if (entry.segments.length === 0 && (entry.ending === null || write.ended !== null)) {
    pending.delete(entry)
  }
  if (write.ended !== null) entry.ending?.settle(refused.has(entry.id) ? 'refused' : 'stored')
}

function fail(entry: Entry, pending: Set<Entry>): void {
  entry.state = 'failed'
  pending.delete(entry)
  entry.write = null
  entry.segments = []
  entry.onFailed()
  entry.ending?.settle('unstored')
}
