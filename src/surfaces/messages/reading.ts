import type { ContentPart, RequestItem } from '#inference/request.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import type { CallBook } from './call-book.ts'
import type { ServerTools } from './server-tools.ts'

/** A conversation as far as it was read. */
export type Reading = {
  readonly items: RequestItem[]
  readonly calls: CallBook
  readonly serverTools: ServerTools
  readonly seal: ReasoningSeal
  /** The turn of the user that is open. */
  user: UserTurn
  /** The types of blocks that were left out. */
  readonly leftOut: Set<string>
}

/** What a user says until somebody else speaks. */
export type UserTurn = { results: RequestItem[]; parts: ContentPart[] }

/** What a message holds. */
export type Content = string | readonly unknown[]
