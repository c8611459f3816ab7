import type { MockFrames } from './mock-frames.ts'
import { modelName, type Plan } from './plan.ts'

const inputTokens = 9

export const messagesFrames: MockFrames = {
  opening: () =>
    messagesFrame('message_start', { message: messageObject(null, null) }) +
    messagesFrame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  token: (text) =>
    messagesFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  closing: (plan) =>
    messagesFrame('content_block_stop', { index: 0 }) +
    messagesFrame('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: plan.tokens },
    }) +
    messagesFrame('message_stop', {}),
  body: (plan, text) => JSON.stringify(messageObject(plan, text)),
}

function messagesFrame(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

/** The Message object; without a plan, an empty one at its start. */
function messageObject(plan: Plan | null, text: string | null) {
  return {
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model: modelName,
    content: text === null ? [] : [{ type: 'text', text }],
    stop_reason: plan === null ? null : 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: inputTokens,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: plan === null ? 1 : plan.tokens,
    },
  }
}
