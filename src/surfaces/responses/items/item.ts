import type { GenerationEvent } from '#inference/events.ts'
import type { FrameWriter } from '#surfaces/responses/frames.ts'

/** An output item on the wire; every kind has an id of ours, which never changes. */
export type OutputItem = {
  readonly id: string
  readonly type: string
  readonly [field: string]: unknown
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** The events that belong to a block, and so to an item. */
export type BlockEvent = Extract<GenerationEvent, { block: number }>

export type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

/** One block of the generation while it is rendered. Methods return SSE frames. */
export type OpenItem = {
  start(): string
  push(event: BlockEvent): string
  end(event: BlockEvent): string
  /** The item as it stands now. */
  item(status: ItemStatus): OutputItem
}

export type ItemContext = {
  frames: FrameWriter
  outputIndex: number
  /** Whether the caller asked for sealed reasoning. */
  includeSealed: boolean
}
