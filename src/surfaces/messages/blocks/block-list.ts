import type { BlockEvent } from '#inference/events.ts'
import { endOfBlock } from '#inference/grammar.ts'
import type { BlockContext, OpenBlock } from './block.ts'
import { openHostedTool, untold } from './hosted-tool.ts'
import { openText } from './text.ts'
import { openThinking } from './thinking.ts'
import { openToolUse } from './tool-use.ts'

/** The blocks of one message, in order, one at a time. */
export type BlockList = {
  push(event: BlockEvent): string
  /** Ends the block that is still open, as one that was cut off. */
  cut(): string
  /**
   * Goes on where another writer ended, who left a block open or none: whether that block goes on
   * here. A hosted tool does not, because the other told it in its own way, nor does thinking that it
   * ended: events say so later than frames do.
   */
  takeOver(leftOpen: boolean): boolean
}

export function createBlockList(context: BlockContext): BlockList {
  let current: OpenBlock | null = null
  let last: BlockEvent | null = null

  const push = (event: BlockEvent): string => {
    last = event
    if (current === null) {
      current = openBlock(event, context)
      return current.start()
    }
    if (!event.type.endsWith('-end')) return current.push(event)
    const written = current.end(event)
    current = null
    return written
  }
  return {
    push,
    cut: () => (last === null ? '' : endOfBlock(last).map(push).join('')),
    takeOver(leftOpen) {
      if (current === null || last === null) return false
      const isThinking = last.type.startsWith('reasoning')
      if (last.type.startsWith('hosted-tool') || (isThinking && !leftOpen)) current = untold
      return current !== untold
    },
  }
}

function openBlock(event: BlockEvent, context: BlockContext): OpenBlock {
  switch (event.type) {
    case 'text-start':
      return openText(event, context)
    case 'reasoning-start':
      return openThinking(event, context)
    case 'tool-call-start':
      return openToolUse(event, context)
    case 'hosted-tool-start':
      return openHostedTool(event, context)
    default:
      throw new Error(`${event.type} opens no block`)
  }
}
