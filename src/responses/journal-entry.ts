import type { EndedResponse, LogSegment, OpenedResponse, ResponseHead } from './stored.ts'

/** The frames of a response that wait for the database. */
export type UnwrittenFrames = {
  readonly untakenChars: number
  /** They do not wait for the next flush. */
  readonly isUrgent: boolean
  /** The frames since the last call, as one segment; null for none. */
  take(): LogSegment | null
}

export const noFrames: UnwrittenFrames = { untakenChars: 0, isUrgent: false, take: () => null }

export type EntryOptions = Pick<ResponseHead, 'id' | 'ownerId' | 'conversationId'> & {
  /** Part of the first write; null if the response is in the database. */
  readonly opened: OpenedResponse | null
  readonly frames: UnwrittenFrames
  /** Frames up to this number are in the database. */
  onWritten?(last: number): void
  /** The database was unavailable for too long: nothing more of this response is written. */
  onFailed?(): void
}

/** `refused`: another worker has ended the response in another way. */
export type Outcome = 'stored' | 'unstored' | 'refused'

/** The part of an entry that one write holds; repeated unchanged while its outcome is unknown. */
type EntryWrite = {
  readonly opened: OpenedResponse | null
  readonly segment: LogSegment | null
  readonly ended: EndedResponse | null
}

export type Entry = EntryOptions & {
  opened: OpenedResponse | null
  /** A client waits for the row, because it holds back the response's id. */
  isOpeningAwaited: boolean
  ending: { readonly ended: EndedResponse; settle(outcome: Outcome): void } | null
  write: EntryWrite | null
  /** `write` is being written. */
  isInFlight: boolean
  failingSince: number | null
  state: 'open' | 'failed' | 'discarded'
}

export function newEntry(options: EntryOptions): Entry {
  return {
    ...options,
    isOpeningAwaited: false,
    ending: null,
    write: null,
    isInFlight: false,
    failingSince: null,
    state: 'open',
  }
}

/** What the next write of the entry holds. */
export function writeOf(entry: Entry): EntryWrite {
  if (entry.write !== null) return entry.write
  entry.write = {
    opened: entry.opened,
    segment: entry.frames.take(),
    ended: entry.ending?.ended ?? null,
  }
  return entry.write
}

export function recordWritten(
  entry: Entry,
  pending: Set<Entry>,
  refused: ReadonlySet<string>,
): void {
  const { write } = entry
  if (write === null || entry.state !== 'open') return
  entry.write = null
  entry.opened = null
  entry.failingSince = null
  if (write.segment !== null) entry.onWritten?.(write.segment.last)
  if (entry.frames.untakenChars === 0 && (entry.ending === null || write.ended !== null)) {
    pending.delete(entry)
  }
  if (write.ended !== null) entry.ending?.settle(refused.has(entry.id) ? 'refused' : 'stored')
}

export function failEntry(entry: Entry, pending: Set<Entry>): void {
  entry.state = 'failed'
  pending.delete(entry)
  entry.write = null
  entry.onFailed?.()
  entry.ending?.settle('unstored')
}
