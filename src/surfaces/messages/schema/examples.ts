import { MessageSink } from '#surfaces/messages/frames.ts'
import { emptyMessage, ended, estimatedUsage, renderUsage } from '#surfaces/messages/message.ts'

/** The example of the OpenAPI document: one request, its message and its event stream. */

export const exampleRequest = {
  model: 'demo',
  max_tokens: 1_024,
  system: 'Answer in one sentence.',
  messages: [{ role: 'user', content: 'What is a sluice?' }],
}

const inputTokens = 22
const usage = renderUsage(
  { inputTokens, cachedTokens: 0, cacheWriteTokens: 0, outputTokens: 8, reasoningTokens: 0 },
  0,
)
const start = emptyMessage({
  id: 'msg_2m7q4k9x1c8v5r0t3w6bzphnjs',
  model: exampleRequest.model,
  usage: estimatedUsage({ inputTokens, outputTokens: 0 }),
})
const end = ended('end_turn')
const text = { type: 'text', text: 'A gate that lets water through.' }

export const exampleMessage = { ...start, content: [text], ...end, usage }

const sink = new MessageSink(null)
export const exampleStream = [
  sink.begin(start),
  sink.start({ ...text, text: '' }),
  sink.delta('text_delta', 'A gate that '),
  sink.delta('text_delta', 'lets water through.'),
  sink.stop(),
  sink.end(end, usage),
].join('')
