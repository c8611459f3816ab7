import { eventFrame } from '#http/frame-text.ts'

/** One response in its shapes: what was asked, the answer as a whole, and as a stream. */

export const sampleIds = {
  response: 'resp_9k2v7d4m1xq8p0rzsw5b3hngtc',
  conversation: 'conv_4t8w1c6r9m2k5x0p7v3bzqhjsd',
  message: 'msg_2m7q4k9x1c8v5r0t3w6bzphnjs',
}

/** Made here, and opened for nobody else. */
export const sampleSeal = 'sluice1.9f2c41d7.q8Zl3vYkWm0r2sXcT7bEJfPa5uHoGdNi'

export const sampleRequest = {
  model: 'llama-3.3-70b',
  instructions: 'Answer in one sentence.',
  input: 'What is a sluice?',
}

const sampleItem = {
  id: sampleIds.message,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [
    {
      type: 'output_text',
      text: 'A gate that lets water through.',
      annotations: [],
      logprobs: [],
    },
  ],
}

export const sampleUsage = {
  input_tokens: 22,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 8,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 30,
}

const begun = {
  id: sampleIds.response,
  object: 'response',
  created_at: 1_795_253_400,
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  usage: null,
  completed_at: null,
  output: [],
  model: sampleRequest.model,
  instructions: sampleRequest.instructions,
  previous_response_id: null,
  tool_choice: 'auto',
  parallel_tool_calls: true,
  temperature: 1,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  top_logprobs: 0,
  truncation: 'disabled',
  max_output_tokens: null,
  max_tool_calls: null,
  store: true,
  background: false,
  service_tier: 'default',
  safety_identifier: null,
  prompt_cache_key: null,
  tools: [],
  text: { format: { type: 'text' } },
  reasoning: { effort: null, summary: null },
  metadata: {},
}

export const sampleResponse = {
  ...begun,
  status: 'completed',
  usage: sampleUsage,
  completed_at: 1_795_253_401,
  output: [sampleItem],
}

const [part] = sampleItem.content
const place = { item_id: sampleIds.message, output_index: 0 }
const inPart = { ...place, content_index: 0 }

/** What goes out, without the end of the stream. */
const events = [
  { type: 'response.created', response: begun },
  { type: 'response.in_progress', response: begun },
  {
    type: 'response.output_item.added',
    output_index: 0,
    item: { ...sampleItem, status: 'in_progress', content: [] },
  },
  { type: 'response.content_part.added', ...inPart, part: { ...part, text: '' } },
  { type: 'response.output_text.delta', ...inPart, logprobs: [], delta: 'A gate that ' },
  { type: 'response.output_text.delta', ...inPart, logprobs: [], delta: 'lets water through.' },
  { type: 'response.output_text.done', ...inPart, text: part?.text, logprobs: [] },
  { type: 'response.content_part.done', ...inPart, part },
  { type: 'response.output_item.done', output_index: 0, item: sampleItem },
  { type: 'response.completed', response: sampleResponse },
]

export const sampleEvents = events.map(({ type, ...fields }, number) => ({
  type,
  sequence_number: number,
  ...fields,
}))

/** As they stand on the wire, from the event of this number on. */
export function sampleStream(from = 0): string {
  const frames = sampleEvents.slice(from).map((event) => eventFrame(event.type, event))
  return `${frames.join('')}data: [DONE]\n\n`
}
