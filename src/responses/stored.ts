import type { ResponseObject, ResponseStatus, StoredItem } from './response.ts'

/** One batch of journal writes. */
export type JournalWork = {
  /** New rows; a background response already has one. */
  readonly opened: readonly OpenedResponse[]
  readonly logged: readonly { readonly id: string; readonly segment: LogSegment }[]
  readonly ended: readonly EndedResponse[]
}

/** Whole SSE frames with the sequence numbers `first` to `last`, one each. */
export type LogSegment = { readonly first: number; readonly last: number; readonly frames: string }

export type ResponseHead = {
  readonly id: string
  readonly ownerId: string
  readonly background: boolean
  readonly createdAt: Date
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  /** Its own input, without the items of previous responses. */
  readonly input: readonly StoredItem[]
}

export type OpenedResponse = ResponseHead & {
  readonly runnerId: string
  readonly object: ResponseObject
}

/** The final state of a response; `segment`: its last frames, null for none. */
export type Ending = {
  readonly object: ResponseObject
  readonly segment: LogSegment | null
}

/**
 * Input and output of a `completed` or `incomplete` response are appended to its conversation, if
 * it has one.
 */
export type EndedResponse = Ending & Pick<ResponseHead, 'id' | 'ownerId' | 'conversationId'>

export type FoundResponse = {
  readonly object: ResponseObject
  readonly runnerId: string | null
  readonly background: boolean
  readonly log: LogProgress
  /** Of an ended response. */
  readonly isLogExpired: boolean
}

export type Chain = {
  readonly status: ResponseStatus
  readonly items: readonly StoredItem[]
}

export type LogProgress = {
  readonly id: string
  readonly status: ResponseStatus
  /** The last sequence number of the log; -1 if the log is empty or expired. */
  readonly last: number
}

export type QueuedResponse = ResponseHead & {
  /** The API key or user that the queue limit applies to. */
  readonly keyId: string
  /** The encrypted request body. */
  readonly request: string
  readonly object: ResponseObject
  readonly segment: LogSegment
}

/** A response in progress that no worker runs. */
export type OrphanedResponse = {
  readonly id: string
  readonly object: ResponseObject
  readonly last: number
}
