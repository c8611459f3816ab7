import { eventFrame } from '#http/frame-text.ts'
import { echoRequest } from '#surfaces/responses/parse.ts'

/** The example of the OpenAPI document: one request, its response and its event stream. */

export const exampleIds = {
  response: 'resp_9k2v7d4m1xq8p0rzsw5b3hngtc',
  conversation: 'conv_4t8w1c6r9m2k5x0p7v3bzqhjsd',
  message: 'msg_2m7q4k9x1c8v5r0t3w6bzphnjs',
}

export const exampleEncryptedContent = 'sluice1.9f2c41d7.q8Zl3vYkWm0r2sXcT7bEJfPa5uHoGdNi'

export const exampleRequest = {
  model: 'demo',
  instructions: 'Answer in one sentence.',
  input: 'What is a sluice?',
}

export const exampleInputItem = {
  id: 'msg_5x1c8v2m7q4k9r0t3w6bzphnjs',
  type: 'message',
  status: 'completed',
  role: 'user',
  content: [{ type: 'input_text', text: exampleRequest.input }],
}

const exampleItem = {
  id: exampleIds.message,
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

export const exampleUsage = {
  input_tokens: 22,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 8,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 30,
}

const responseInProgress = {
  id: exampleIds.response,
  object: 'response',
  created_at: 1_795_253_400,
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  usage: null,
  completed_at: null,
  output: [],
  ...echoRequest(exampleRequest, {
    tools: [],
    text: { format: { type: 'text' } },
    reasoning: { effort: null, summary: null },
    metadata: {},
  }),
}

export const exampleResponse = {
  ...responseInProgress,
  status: 'completed',
  usage: exampleUsage,
  completed_at: 1_795_253_401,
  output: [exampleItem],
}

const [part] = exampleItem.content
const itemFields = { item_id: exampleIds.message, output_index: 0 }
const partFields = { ...itemFields, content_index: 0 }

const events = [
  { type: 'response.created', response: responseInProgress },
  { type: 'response.in_progress', response: responseInProgress },
  {
    type: 'response.output_item.added',
    output_index: 0,
    item: { ...exampleItem, status: 'in_progress', content: [] },
  },
  { type: 'response.content_part.added', ...partFields, part: { ...part, text: '' } },
  { type: 'response.output_text.delta', ...partFields, logprobs: [], delta: 'A gate that ' },
  { type: 'response.output_text.delta', ...partFields, logprobs: [], delta: 'lets water through.' },
  { type: 'response.output_text.done', ...partFields, text: part?.text, logprobs: [] },
  { type: 'response.content_part.done', ...partFields, part },
  { type: 'response.output_item.done', output_index: 0, item: exampleItem },
  { type: 'response.completed', response: exampleResponse },
]

export const exampleEvents = events.map(({ type, ...fields }, number) => ({
  type,
  sequence_number: number,
  ...fields,
}))

/** The events on the wire, from the event with this number on. */
export function exampleStream(from = 0): string {
  const frames = exampleEvents.slice(from).map((event) => eventFrame(event.type, event))
  return `${frames.join('')}data: [DONE]\n\n`
}
