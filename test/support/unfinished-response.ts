import type { MessageKind } from './message-clients.ts'
import { chatStream } from './recordings.ts'
import type { ReplayAnswer } from './replay-upstream.ts'
import { chunk } from './scripted-answers.ts'
import { messageStart, messageWire } from './scripted-messages.ts'

/** An upstream response with this beginning that does not end. */
export function unfinishedResponse(
  kind: MessageKind,
  pieces: readonly string[] = ['Quiet '],
): ReplayAnswer {
  return { body: bodies[kind](pieces), ending: 'hang' }
}

const message = { type: 'message', id: 'm', role: 'assistant', content: [] }

const bodies: Readonly<Record<MessageKind, (pieces: readonly string[]) => string>> = {
  demo: () => '',
  chat: (pieces) =>
    chatStream(pieces.map((content) => chunk({ content }))).replace('data: [DONE]\n\n', ''),
  responses: (pieces) =>
    [
      { type: 'response.created', response: { id: 'x', status: 'in_progress' } },
      { type: 'response.output_item.added', output_index: 0, item: message },
      ...pieces.map((delta) => ({
        type: 'response.output_text.delta',
        output_index: 0,
        item_id: 'm',
        delta,
      })),
    ]
      .map((event) => `data: ${JSON.stringify(event)}\n\n`)
      .join(''),
  messages: (pieces) =>
    messageWire([
      messageStart,
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ...pieces.map((text) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text },
      })),
    ]),
}
