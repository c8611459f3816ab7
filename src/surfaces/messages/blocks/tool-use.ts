import { assert } from '#lib/assert.ts'
import { toToolUseId } from '#surfaces/messages/tool-id.ts'
import type { BlockContext, EventOf, OpenBlock } from './block.ts'

/**
 * A call as a tool_use block. Arguments go out as the model wrote them, also where they are cut off:
 * to mend them would make a call that looks complete and does something else.
 */
export function openToolUse(
  { call }: EventOf<'tool-call-start'>,
  { sink, tally }: BlockContext,
): OpenBlock {
  const isCustom = call.form === 'custom'
  const shell = {
    type: 'tool_use',
    id: toToolUseId(call.callId),
    name: call.name,
    input: {},
    caller: { type: 'direct' },
  }
  const give = (json: string) => (json === '' ? '' : sink().delta('input_json_delta', json))
  return {
    start() {
      tally.toolUses++
      return sink().start(shell) + (isCustom ? give(customHead) : '')
    },
    push(event) {
      assert(event.type === 'tool-call-delta', `${event.type} in a tool call`)
      return give(isCustom ? JSON.stringify(event.text).slice(1, -1) : event.text)
    },
    end(event) {
      assert(event.type === 'tool-call-end', `${event.type} ends a tool call`)
      return (isCustom && event.complete ? give(customTail) : '') + sink().stop()
    },
  }
}

/** The format knows objects alone, so free text is the one field of one. */
const customHead = '{"input":"'
const customTail = '"}'
