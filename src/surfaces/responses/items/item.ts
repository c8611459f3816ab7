import type { BlockEvent, GenerationEvent } from '#inference/events.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import type { Frames } from '#surfaces/responses/frames.ts'

/** An output item on the wire; every kind has an id of ours, which never changes. */
export type OutputItem = {
  readonly id: string
  readonly type: string
  readonly [field: string]: unknown
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** As its caller gets to see it, or with everything that a later turn may need. */
export type ItemForm = 'shown' | 'stored'

export type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

/** One block of the generation while it is rendered. Methods return SSE frames. */
export type OpenItem = {
  start(): string
  push(event: BlockEvent): string
  end(event: BlockEvent): string
  /** The item as it stands now. */
  item(status: ItemStatus, form: ItemForm): OutputItem
}

export type ItemContext = {
  frames: Frames
  outputIndex: number
  /** Whether the caller asked for sealed reasoning. */
  includeSealed: boolean
  /** Whether the caller asked for what searches of files have found. */
  includeSearchResults: boolean
  reasoningSeal: ReasoningSeal
}
