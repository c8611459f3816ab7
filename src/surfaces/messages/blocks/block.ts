import type { BlockEvent, GenerationEvent } from '#inference/events.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import type { MessageSink } from '#surfaces/messages/message.ts'

export type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

/**
 * One block of the generation while it is rendered. Methods return SSE frames. `sink` is where
 * blocks go now; a block opens there when it first has something to say.
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

/** `omitted`: thinking comes with its signature and without its text. */
export type ThinkingDisplay = 'summarized' | 'omitted'

/** What the blocks were, as far as the end of the message depends on it. */
export type BlockTally = {
  toolUses: number
  webSearches: number
  hasRefusal: boolean
}

/** Takes what is said elsewhere already: every block is open there, and nothing is written. */
export const silentSink: BlockSink = {
  start: () => '',
  delta: () => '',
  cite: () => '',
  stop: () => '',
  isOpen: () => true,
}
