import { eventFrame } from '#http/frame-text.ts'

/** One message in its shapes: what was asked, the answer as a whole, and as a stream. */

export const sampleRequest = {
  model: 'vendor-model-llama-3.3-70b',
  max_tokens: 1_024,
  system: 'Answer in one sentence.',
  messages: [{ role: 'user', content: 'What is a sluice?' }],
}

const counted = {
  input_tokens: 22,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 8,
  output_tokens_details: { thinking_tokens: 0 },
  server_tool_use: null,
  service_tier: null,
  speed: null,
  inference_geo: null,
}

const end = { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null }
const text = 'A gate that lets water through.'

export const sampleMessage = {
  id: 'msg_2m7q4k9x1c8v5r0t3w6bzphnjs',
  type: 'message',
  role: 'assistant',
  model: sampleRequest.model,
  content: [{ type: 'text', text, citations: null }],
  ...end,
  diagnostics: null,
  usage: counted,
}

const begun = {
  ...sampleMessage,
  content: [],
  stop_reason: null,
  usage: { ...counted, output_tokens: 0, output_tokens_details: null },
}

const place = { index: 0 }
const delta = (piece: string) => ({ ...place, delta: { type: 'text_delta', text: piece } })

const events: readonly { type: string; [field: string]: unknown }[] = [
  { type: 'message_start', message: begun },
  {
    type: 'content_block_start',
    ...place,
    content_block: { type: 'text', text: '', citations: null },
  },
  { type: 'content_block_delta', ...delta('A gate that ') },
  { type: 'content_block_delta', ...delta('lets water through.') },
  { type: 'content_block_stop', ...place },
  { type: 'message_delta', delta: end, usage: counted },
  { type: 'message_stop' },
]

export const sampleStream = events.map((event) => eventFrame(event.type, event)).join('')
