import type { JsonObject } from '#lib/json.ts'
import type { MessageFrame } from './message-frames.ts'

/** A stream with a block of every kind with deltas, written by hand in the format of the vendor. */
export function sampleMessage(): MessageFrame[] {
  const usage = { input_tokens: 9, output_tokens: 1, cache_read_input_tokens: 0 }
  const citation = {
    type: 'web_search_result_location',
    url: 'u',
    title: 't',
    cited_text: 'c',
    encrypted_index: '',
  }
  const blocks: [shell: JsonObject, ...deltas: JsonObject[]][] = [
    [
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'thinking_delta', thinking: 'Hm, ' },
      { type: 'thinking_delta', thinking: 'yes.' },
      { type: 'signature_delta', signature: 's' },
    ],
    [{ type: 'redacted_thinking', data: 'd' }],
    [{ type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'n', server_name: 's', input: { a: 1 } }],
    [{ type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [] }],
    [
      { type: 'text', text: '', citations: null },
      { type: 'text_delta', text: 'So ' },
      { type: 'citations_delta', citation },
      { type: 'text_delta', text: 'it is.' },
    ],
    [
      { type: 'tool_use', id: 'toolu_1', name: 'n', input: {}, caller: { type: 'direct' } },
      { type: 'input_json_delta', partial_json: '' },
      { type: 'input_json_delta', partial_json: '{"a"' },
      { type: 'input_json_delta', partial_json: ':1}' },
    ],
  ]
  return [
    {
      type: 'message_start',
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      },
    },
    { type: 'ping' },
    ...blocks.flatMap(([shell, ...deltas], index) => [
      { type: 'content_block_start', index, content_block: shell },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null, stop_details: null },
      usage: {
        input_tokens: null,
        output_tokens: 7,
        output_tokens_details: { thinking_tokens: 3 },
      },
    },
    { type: 'message_stop' },
  ]
}

/** Frames as they are sent. */
export function messageWire(frames: readonly MessageFrame[]): string {
  return frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join('')
}
