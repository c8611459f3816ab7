import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { joinSegments } from './log-segment.ts'
import type { ResponseStore } from './store.ts'
import type { EndedResponse, Ending, LogSegment, OpenedResponse } from './stored.ts'

/**
 * Gathers what all running responses have to write and writes it in groups, one after the other:
 * what comes while a write is under way goes into the next.
 */
export type Journal = {
  enter(entry: EntryOptions): JournalEntry
  /** Writes what there is, or gives it up; nothing is entered any more. */
  close(): Promise<void>
}

type EntryOptions = {
  readonly id: string
  /** Goes into the first write; null where the response is in the database already. */
  readonly opened: OpenedResponse | null
  /** Frames up to this number are in the database. */
  written(last: number): void
  /** The database is away for too long: nothing of this response will be written any more. */
  givenUp(): void
}

export type JournalEntry = {
  append(segment: LogSegment): void
  end(ending: Ending): Promise<Outcome>
  /** Forgets what was not written; resolves when nothing of it is being written any more. */
  discard(): Promise<void>
  /** Whether the database knows of this response. */
  isKnown(): boolean
}

type Outcome = 'stored' | 'unstored'

const writeWaitMaxMs = 5_000
/** After a write that failed. */
const pauseMinMs = 50
const pauseMaxMs = 1_000
/** The frames of one write. What does not fit goes into the next. */
const writeCharsMax = 1_048_576

/** What is written at once, and written again exactly so when it is not known to be written. */
type Portion = {
  readonly opened: OpenedResponse | null
  readonly segment: LogSegment | null
  readonly ended: EndedResponse | null
}

type Entry = EntryOptions & {
  opened: OpenedResponse | null
  segments: LogSegment[]
  /** Of the segments, in characters. */
  chars: number
  ending: { readonly ended: EndedResponse; settle(outcome: Outcome): void } | null
  portion: Portion | null
  failingSince: number | null
  state: 'open' | 'given-up' | 'discarded'
}

export type JournalDeps = {
  store: Pick<ResponseStore, 'write'>
  flushMs: number
  /** How long a response waits for a database that is away. */
  patienceMs: number
  /** A response with so much to write does not wait for the next regular write. */
  urgentChars: number
  log: Pick<Log, 'error'>
}

export function createJournal(deps: JournalDeps): Journal {
  /** What has something to write, in the order of its coming. */
  const waiting = new Set<Entry>()
  const writer = createWriter(deps, waiting)
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing: Promise<void> | undefined

  function flush() {
    clearTimeout(timer)
    timer = undefined
    flushing ??= writer.writeUntilCalm().finally(() => {
      flushing = undefined
      if (writer.isUrgent()) flush()
      else if (waiting.size > 0) later()
    })
  }
  function later() {
    timer ??= setTimeout(flush, deps.flushMs)
  }
  return {
    enter(options) {
      const entry: Entry = {
        ...options,
        segments: [],
        chars: 0,
        ending: null,
        portion: null,
        failingSince: null,
        state: 'open',
      }
      return {
        append(segment) {
          if (entry.state !== 'open') return
          entry.segments.push(segment)
          entry.chars += segment.frames.length
          waiting.add(entry)
          if (entry.chars >= deps.urgentChars) flush()
          else later()
        },
        end(ending) {
          if (entry.state !== 'open') return Promise.resolve('unstored')
          waiting.add(entry)
          const { promise, resolve } = Promise.withResolvers<Outcome>()
          entry.ending = { ended: { id: entry.id, ...ending }, settle: resolve }
          flush()
          return promise
        },
        async discard() {
          entry.state = 'discarded'
          waiting.delete(entry)
          entry.ending?.settle('unstored')
          await writer.underWay()
        },
        isKnown: () => entry.opened === null,
      }
    },
    async close() {
      while (waiting.size > 0 || flushing !== undefined) {
        flush()
        await flushing
      }
      clearTimeout(timer)
    },
  }
}

/** Writes what waits, group by group. */
function createWriter({ store, log, urgentChars, patienceMs }: JournalDeps, waiting: Set<Entry>) {
  let failingSince: number | null = null
  let underWay: Promise<void> | undefined

  async function write(group: readonly Entry[]): Promise<void> {
    const portions = group.map((entry) => ({ id: entry.id, ...portionOf(entry) }))
    const written = withTimeLimit(
      store.write({
        opened: portions.flatMap(({ opened }) => opened ?? []),
        logged: portions.flatMap(({ id, segment }) => (segment === null ? [] : { id, segment })),
        ended: portions.flatMap(({ ended }) => ended ?? []),
      }),
      writeWaitMaxMs,
      () => new Error(`a write took longer than ${writeWaitMaxMs} ms`),
    )
    underWay = written.catch(() => {})
    await written
    failingSince = null
    for (const entry of group) noteWritten(entry, waiting)
  }

  /** One that the database refuses must not hold up the others; one that is away is not asked twice. */
  async function writeEach(group: readonly Entry[]): Promise<void> {
    let failures = 0
    for (const entry of group) {
      if (failures === 2) return
      if (entry.state !== 'open') continue
      try {
        await write([entry])
      } catch (error) {
        failures += 1
        // Behind the others, so that the next attempt begins with another one.
        waiting.delete(entry)
        waiting.add(entry)
        noteFailure(entry, error)
      }
    }
  }

  function noteFailure(entry: Entry, error: unknown) {
    if (entry.state !== 'open') return
    const now = performance.now()
    failingSince ??= now
    entry.failingSince ??= now
    if (now - Math.min(failingSince, entry.failingSince) < patienceMs) return
    giveUp(entry, waiting)
    log.error('a response could not be stored', { response_id: entry.id, error })
  }

  function isUrgent() {
    for (const { ending, portion, chars } of waiting) {
      if (ending !== null || portion !== null || chars >= urgentChars) return true
    }
    return false
  }

  return {
    isUrgent,
    underWay: async () => underWay,
    /** Until no response waits for its end, and no write has failed. */
    async writeUntilCalm() {
      let pauseMs = pauseMinMs
      do {
        const group = takeGroup(waiting)
        if (group.length === 0) return
        try {
          await write(group)
          pauseMs = pauseMinMs
        } catch (error) {
          if (group.length > 1) await writeEach(group)
          for (const entry of group) if (entry.portion !== null) noteFailure(entry, error)
          await Bun.sleep(pauseMs)
          pauseMs = Math.min(2 * pauseMs, pauseMaxMs)
        }
      } while (isUrgent())
    },
  }
}

function takeGroup(waiting: ReadonlySet<Entry>): Entry[] {
  const group: Entry[] = []
  let chars = 0
  for (const entry of waiting) {
    group.push(entry)
    const { segment, ended } = portionOf(entry)
    chars += (segment?.frames.length ?? 0) + (ended?.segment?.frames.length ?? 0)
    if (chars >= writeCharsMax) break
  }
  return group
}

function portionOf(entry: Entry): Portion {
  if (entry.portion !== null) return entry.portion
  entry.portion = {
    opened: entry.opened,
    segment: joinSegments(entry.segments),
    ended: entry.ending?.ended ?? null,
  }
  entry.segments = []
  entry.chars = 0
  return entry.portion
}

function noteWritten(entry: Entry, waiting: Set<Entry>): void {
  const { portion } = entry
  if (portion === null || entry.state !== 'open') return
  entry.portion = null
  entry.opened = null
  entry.failingSince = null
  if (portion.segment !== null) entry.written(portion.segment.last)
  if (entry.segments.length === 0 && (entry.ending === null || portion.ended !== null)) {
    waiting.delete(entry)
  }
  if (portion.ended !== null) entry.ending?.settle('stored')
}

function giveUp(entry: Entry, waiting: Set<Entry>): void {
  entry.state = 'given-up'
  waiting.delete(entry)
  entry.portion = null
  entry.segments = []
  entry.givenUp()
  entry.ending?.settle('unstored')
}
