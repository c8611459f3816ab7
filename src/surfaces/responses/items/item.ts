import type { BlockEvent, GenerationEvent } from '#inference/events.ts'
import type { ToolName } from '#inference/request.ts'
import type { StoredItem } from '#responses/response.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'
import type { Frames } from '#surfaces/responses/frames.ts'

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** `shown`: as the client sees it. `stored`: with everything that a later response may need. */
export type ItemForm = 'shown' | 'stored'

export type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

/** A block of the generation while it is rendered. Methods return SSE frames. */
export type OpenItem = {
  /** The frames after `output_item.added`. */
  start?(): string
  push(event: BlockEvent): string
  /** The frames before `output_item.done`. */
  end(event: BlockEvent): string
  /** The item so far. */
  item(status: ItemStatus, form: ItemForm): StoredItem
}

export type ItemContext = {
  frames: Frames
  outputIndex: number
  /** Whether the client requested encrypted reasoning. */
  includeSealed: boolean
  /** Whether the client requested the results of file searches. */
  includeSearchResults: readonly string[]
  reasoningSeal: ReasoningSeal
  /** The tools whose calls are marked as asynchronous. */
  asyncTools?: readonly ToolName[]
}
