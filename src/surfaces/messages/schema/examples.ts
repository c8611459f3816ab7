import { eventFrame } from '#http/frame-text.ts'

/** The example of the OpenAPI document: one request, its message and its event stream. */

export const exampleRequest = {
  model: 'vendor-model-llama-3.3-70b',
  max_tokens: 1_024,
  system: 'Answer in one sentence.',
  messages: [{ role: 'user', content: 'What is a sluice?' }],
}

const usage = {
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

export const exampleMessage = {
  id: 'msg_2m7q4k9x1c8v5r0t3w6bzphnjs',
  type: 'message',
  role: 'assistant',
  model: exampleRequest.model,
  content: [{ type: 'text', text, citations: null }],
  ...end,
  diagnostics: null,
  usage,
}

const messageStart = {
  ...exampleMessage,
  content: [],
  stop_reason: null,
  usage: { ...usage, output_tokens: 0, output_tokens_details: null },
}

const blockIndex = { index: 0 }
const textDelta = (text: string) => ({ ...blockIndex, delta: { type: 'text_delta', text } })

const events: readonly { type: string; [field: string]: unknown }[] = [
  { type: 'message_start', message: messageStart },
  {
    type: 'content_block_start',
    ...blockIndex,
    content_block: { type: 'text', text: '', citations: null },
  },
  { type: 'content_block_delta', ...textDelta('A gate that ') },
  { type: 'content_block_delta', ...textDelta('lets water through.') },
  { type: 'content_block_stop', ...blockIndex },
  { type: 'message_delta', delta: end, usage },
  { type: 'message_stop' },
]

export const exampleStream = events.map((event) => eventFrame(event.type, event)).join('')
