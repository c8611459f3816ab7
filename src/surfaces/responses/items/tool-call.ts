import { isSameTool } from '#inference/tools.ts'
import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import { deltaHead } from '#surfaces/responses/frames.ts'
import type { EventOf, ItemContext, OpenItem } from './item.ts'

export function openToolCall(
  { call }: EventOf<'tool-call-start'>,
  { frames, outputIndex, asyncTools = [] }: ItemContext,
): OpenItem {
  const isCustom = call.form === 'custom'
  const isAsync = asyncTools.some((tool) => isSameTool(tool, call))
  const id = newId(isCustom ? 'ctc_' : 'fc_')
  const field = isCustom ? 'input' : 'arguments'
  const stem = isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  const place = { item_id: id, output_index: outputIndex }
  const head = deltaHead(`${stem}.delta`, place)
  let text = ''

  return {
    push(event) {
      assert(event.type === 'tool-call-delta', `${event.type} in a tool call`)
      text += event.text
      return frames.delta(head, event.text)
    },
    end(event) {
      assert(event.type === 'tool-call-end', `${event.type} ends a tool call`)
      return frames.frame(`${stem}.done`, { ...place, [field]: text })
    },
    item: (status) => ({
      id,
      type: isCustom ? 'custom_tool_call' : 'function_call',
      status,
      call_id: call.callId,
      name: call.name,
      [field]: text,
      ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
      ...(isAsync ? { async: true } : {}),
    }),
  }
}
