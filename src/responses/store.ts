import type { Page, PageRequest, ResponseObject, ResponseStatus, StoredItem } from './response.ts'

/**
 * The tables of stored responses. Every question names the owner; what belongs to somebody else is
 * answered as if it did not exist.
 */
export type ResponseStore = {
  /** In one transaction. What was deleted in the meantime stays deleted; nothing of it is written. */
  write(work: JournalWork): Promise<void>
  find(ownerId: string, id: string): Promise<FoundResponse | undefined>
  /**
   * Everything that a response that follows `id` has before its own input: input and output of the
   * whole chain, oldest first. Undefined where `id`, or anything before it, is gone. Puts off the
   * end of the whole chain.
   */
  chain(ownerId: string, id: string): Promise<Chain | undefined>
  /** Items of responses and of conversations by their ids; what is not there is left out. */
  findItems(ownerId: string, itemIds: readonly string[]): Promise<ReadonlyMap<string, StoredItem>>
  /** The input of a response with all that it followed; undefined where there is no such response. */
  listInputItems(
    ownerId: string,
    id: string,
    page: PageRequest,
  ): Promise<Page<StoredItem> | undefined>
  /** Says whether there was such a response. */
  remove(ownerId: string, id: string): Promise<boolean>

  /** Pieces of a log that begin behind this sequence number or span it, in order. */
  readLog(id: string, after: number, charsMax: number): Promise<readonly LogPiece[]>
  /** How far these logs have come; what is gone is left out. */
  progress(ids: readonly string[]): Promise<readonly LogProgress[]>

  /** Says no when the key has `unfinishedMax` background responses that are not over. */
  enqueue(response: QueuedResponse, unfinishedMax: number): Promise<boolean>
  /** Takes the oldest queued responses for this runner; each is taken once, whoever asks. */
  claim(runnerId: string, countMax: number): Promise<readonly QueuedResponse[]>
  /** Ends a response that is still queued; says whether it was. The pieces go to its log. */
  endQueued(ownerId: string, id: string, ending: Ending): Promise<boolean>

  /** Says that this runner lives. */
  beat(runnerId: string): Promise<void>
  /** Responses in progress whose runner gave no sign of life since then, or never did. */
  findLost(before: Date, countMax: number): Promise<readonly LostResponse[]>
  endLost(id: string, ending: Ending): Promise<boolean>
  /** Deletes what is past its time, and the oldest responses of those who have too many. */
  sweep(now: Date): Promise<void>
}

/** What running responses have to write, gathered. */
export type JournalWork = {
  readonly opened: readonly OpenedResponse[]
  readonly logged: readonly { readonly id: string; readonly piece: LogPiece }[]
  readonly ended: readonly EndedResponse[]
}

/** Whole SSE frames, each with one sequence number: `first`, `first + 1`, … */
export type LogPiece = { readonly first: number; readonly last: number; readonly frames: string }

export type ResponseHead = {
  readonly id: string
  readonly ownerId: string
  readonly background: boolean
  readonly createdAt: Date
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  /** Its own input, without what it follows. */
  readonly input: readonly StoredItem[]
}

export type OpenedResponse = ResponseHead & {
  readonly runnerId: string
  readonly object: ResponseObject
}

export type Ending = {
  readonly object: ResponseObject
  /** The last of the log; null where nothing is to be added. */
  readonly piece: LogPiece | null
}

/**
 * The end of a response. Its input and output go to its conversation, if it has one and ended
 * `completed` or `incomplete`.
 */
export type EndedResponse = Ending & { readonly id: string }

export type FoundResponse = {
  readonly object: ResponseObject
  readonly runnerId: string | null
  readonly background: boolean
  readonly log: LogProgress
}

export type Chain = {
  readonly status: ResponseStatus
  readonly items: readonly StoredItem[]
}

export type LogProgress = {
  readonly id: string
  readonly status: ResponseStatus
  /** The last sequence number in the log; -1 while it is empty, and once it was dropped. */
  readonly last: number
}

export type QueuedResponse = ResponseHead & {
  /** Whose queue it stands in. */
  readonly keyId: string
  /** The sealed body of the request. */
  readonly request: string
  readonly object: ResponseObject
  readonly piece: LogPiece
}

export type LostResponse = {
  readonly id: string
  readonly object: ResponseObject
  readonly last: number
}
