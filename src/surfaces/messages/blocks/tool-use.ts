import type { BlockEvent, ToolCallHead } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import { toToolUseId } from '#surfaces/messages/tool-id.ts'
import type { BlockContext, BlockSink, BlockTally, EventOf, OpenBlock } from './block.ts'

/**
 * A call as a tool_use block. Arguments are sent as the model wrote them, even if incomplete: repairing
 * them could make a call that looks complete but does something else.
 */
export class ToolUseBlock implements OpenBlock {
  readonly #isCustom: boolean
  readonly #call: ToolCallHead
  readonly #tally: BlockTally

  constructor({ call }: EventOf<'tool-call-start'>, { tally }: BlockContext) {
    this.#isCustom = call.form === 'custom'
    this.#call = call
    this.#tally = tally
  }

  start(sink: BlockSink): string {
    this.#tally.toolUses++
    const { callId, name } = this.#call
    const shell = {
      type: 'tool_use',
      id: toToolUseId(callId),
      name,
      input: {},
      caller: { type: 'direct' },
    }
    return sink.start(shell) + (this.#isCustom ? inputDelta(sink, customHead) : '')
  }

  push(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'tool-call-delta', `${event.type} in a tool call`)
    const { text } = event
    return inputDelta(sink, this.#isCustom ? JSON.stringify(text).slice(1, -1) : text)
  }

  end(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'tool-call-end', `${event.type} ends a tool call`)
    return (this.#isCustom && event.complete ? inputDelta(sink, customTail) : '') + sink.stop()
  }
}

function inputDelta(sink: BlockSink, json: string): string {
  return json === '' ? '' : sink.delta('input_json_delta', json)
}

/** The format only has object inputs, so free text becomes the field `input`. */
const customHead = '{"input":"'
const customTail = '"}'
