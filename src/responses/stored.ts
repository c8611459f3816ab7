import type { ResponseObject, ResponseStatus, StoredItem } from './response.ts'

/** What running responses have to write, gathered. */
export type JournalWork = {
  /** New ones; one that was in the queue is known already. */
  readonly opened: readonly OpenedResponse[]
  readonly logged: readonly { readonly id: string; readonly segment: LogSegment }[]
  readonly ended: readonly EndedResponse[]
}

/** Whole SSE frames, each with one sequence number: `first`, `first + 1`, … */
export type LogSegment = { readonly first: number; readonly last: number; readonly frames: string }

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
  readonly segment: LogSegment | null
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
  readonly segment: LogSegment
}

export type OrphanedResponse = {
  readonly id: string
  readonly object: ResponseObject
  readonly last: number
}
