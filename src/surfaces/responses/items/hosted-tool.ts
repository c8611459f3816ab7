import type { HostedToolItem } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import type { EventOf, ItemContext, OpenItem } from './item.ts'

/** The progress events that clients know; any other event type breaks strict ones. */
const hostedStages: Readonly<Record<string, readonly string[]>> = {
  web_search_call: ['in_progress', 'searching', 'completed'],
  file_search_call: ['in_progress', 'searching', 'completed'],
  code_interpreter_call: ['in_progress', 'interpreting', 'completed'],
  image_generation_call: ['in_progress', 'generating', 'completed'],
  mcp_call: ['in_progress', 'completed', 'failed'],
  mcp_list_tools: ['in_progress', 'completed', 'failed'],
}

export function openHostedTool(
  start: EventOf<'hosted-tool-start'>,
  { frames, outputIndex }: ItemContext,
): OpenItem {
  const id = newId(`${start.item.type.replace(/_call$/, '')}_`)
  let current: HostedToolItem = start.item
  const item = () => ({ ...current, id })
  return {
    start: () =>
      frames.frame('response.output_item.added', { output_index: outputIndex, item: item() }),
    push(event) {
      assert(event.type === 'hosted-tool-progress', `${event.type} in a hosted tool`)
      if (!hostedStages[current.type]?.includes(event.stage)) return ''
      return frames.frame(`response.${current.type}.${event.stage}`, {
        item_id: id,
        output_index: outputIndex,
      })
    },
    end(event) {
      assert(event.type === 'hosted-tool-end', `${event.type} ends a hosted tool`)
      current = event.item ?? { ...current, status: 'incomplete' }
      return frames.frame('response.output_item.done', { output_index: outputIndex, item: item() })
    },
    item,
  }
}
