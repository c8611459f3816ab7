import type { BlockEvent } from '#inference/events.ts'
import { endOfBlock } from '#inference/grammar.ts'
import { openHostedTool } from './hosted-tool.ts'
import type { ItemContext, ItemForm, ItemStatus, OpenItem, OutputItem } from './item.ts'
import { openMessage } from './message.ts'
import { openReasoning } from './reasoning.ts'
import { openToolCall } from './tool-call.ts'

/** The output of one response: blocks become items, in order, one at a time. */
export type ItemList = {
  push(event: BlockEvent): string
  /** Ends the item that is still open, as one that was cut off. */
  cut(): string
  /** The items as they stand, with the one that is still open. */
  output(form: ItemForm): OutputItem[]
}

export function createItemList(context: Omit<ItemContext, 'outputIndex'>): ItemList {
  const closed: { item: OpenItem; status: ItemStatus }[] = []
  let current: OpenItem | null = null
  let last: BlockEvent | null = null

  const push = (event: BlockEvent): string => {
    last = event
    if (current === null) {
      current = openItem(event, { ...context, outputIndex: closed.length })
      return current.start()
    }
    if (!event.type.endsWith('-end')) return current.push(event)
    const written = current.end(event)
    const isCut = 'complete' in event && !event.complete
    closed.push({ item: current, status: isCut ? 'incomplete' : 'completed' })
    current = null
    return written
  }
  return {
    push,
    cut: () => (last === null ? '' : endOfBlock(last).map(push).join('')),
    output(form) {
      const items = closed.map(({ item, status }) => item.item(status, form))
      return current === null ? items : [...items, current.item('in_progress', form)]
    },
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
