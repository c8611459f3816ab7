import type { FrameWriter } from '#surfaces/responses/frames.ts'
import { openHostedTool } from './hosted-tool.ts'
import type { BlockEvent, ItemContext, OpenItem, OutputItem } from './item.ts'
import { openMessage } from './message.ts'
import { openReasoning } from './reasoning.ts'
import { openToolCall } from './tool-call.ts'

/** The output of one response: blocks become items, in order, one at a time. */
export type ItemList = {
  push(event: BlockEvent): string
  /** The items as they stand, with the one that is still open. */
  output(): OutputItem[]
}

export function createItemList(frames: FrameWriter, includeSealed: boolean): ItemList {
  const closed: OutputItem[] = []
  let current: OpenItem | null = null

  return {
    push(event) {
      if (current === null) {
        current = openItem(event, { frames, outputIndex: closed.length, includeSealed })
        return current.start()
      }
      if (!event.type.endsWith('-end')) return current.push(event)
      const written = current.end(event)
      closed.push(current.item('complete' in event && !event.complete ? 'incomplete' : 'completed'))
      current = null
      return written
    },
    output: () => (current === null ? [...closed] : [...closed, current.item('in_progress')]),
  }
}

function openItem(event: BlockEvent, context: ItemContext): OpenItem {
  switch (event.type) {
    case 'text-start':
      return openMessage(event, context)
    case 'reasoning-start':
      return openReasoning(event, context)
    case 'tool-call-start':
      return openToolCall(event, context)
    case 'hosted-tool-start':
      return openHostedTool(event, context)
    default:
      throw new Error(`${event.type} opens no item`)
  }
}
