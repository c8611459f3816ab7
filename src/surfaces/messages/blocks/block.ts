import type { BlockEvent, GenerationEvent } from '#inference/events.ts'
import type { ReasoningSeal } from '#sealing/seals.ts'
import type { MessageSink } from '#surfaces/messages/message.ts'

export type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

/**
 * A block of the generation while it is rendered. Methods return SSE frames. A block opens in `sink`
 * with its first content.
 */
export type OpenBlock = {
  start(sink: BlockSink): string
  push(sink: BlockSink, event: BlockEvent): string
  end(sink: BlockSink, event: BlockEvent): string
}

export type BlockContext = {
  reasoningSeal: ReasoningSeal
  thinkingDisplay: ThinkingDisplay
  tally: BlockTally
}

export type BlockSink = Pick<MessageSink, 'start' | 'delta' | 'cite' | 'stop' | 'isOpen'>

/** `omitted`: thinking has a signature but no text. */
export type ThinkingDisplay = 'summarized' | 'omitted'

/** Counts of blocks that determine the end of the message. */
export type BlockTally = {
  toolUses: number
  webSearches: number
  hasRefusal: boolean
}

/** Discards blocks whose frames are relayed: every block counts as open, and nothing is written. */
export const silentSink: BlockSink = {
  start: () => '',
  delta: () => '',
  cite: () => '',
  stop: () => '',
  isOpen: () => true,
}
