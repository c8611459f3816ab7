import { modelName, type Plan } from './plan.ts'

export const protocols = ['chat', 'responses', 'messages'] as const
export type Protocol = (typeof protocols)[number]

/** SSE frames and JSON body of one protocol for a plan's tokens. */
export type MockFrames = {
  opening(): string
  token(text: string, index: number): string
  /** `text`: all tokens joined; `wantsUsage`: chat's `stream_options.include_usage`. */
  closing(plan: Plan, text: string, wantsUsage: boolean): string
  body(plan: Plan, text: string): string
}

const inputTokens = 9
const createdS = 1_700_000_000
const doneFrame = 'data: [DONE]\n\n'

export const chatFrames: MockFrames = {
  opening: () => chatFrame({ role: 'assistant', content: '' }, null),
  token: (text) => chatFrame({ content: text }, null),
  closing(plan, _text, wantsUsage) {
    const finish = chatFrame({}, 'stop')
    if (!wantsUsage) return finish + doneFrame
    const usage = { ...chatHead('chat.completion.chunk'), choices: [], usage: chatUsage(plan) }
    return `${finish}data: ${JSON.stringify(usage)}\n\n${doneFrame}`
  },
  body: (plan, text) =>
    JSON.stringify({
      ...chatHead('chat.completion'),
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: chatUsage(plan),
    }),
}

function chatFrame(delta: object, finishReason: string | null): string {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }]
  return `data: ${JSON.stringify({ ...chatHead('chat.completion.chunk'), choices })}\n\n`
}

function chatHead(object: string) {
  return { id: 'chatcmpl-bench', object, created: createdS, model: modelName }
}

function chatUsage(plan: Plan) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: plan.tokens,
    total_tokens: inputTokens + plan.tokens,
  }
}

const itemId = 'msg_bench'
const place = { item_id: itemId, output_index: 0, content_index: 0 }
/** The events before the first token: created, in_progress, the item, its part. */
const openingEvents = 4

export const responsesFrames: MockFrames = {
  opening() {
    const response = responseObject(null, null)
    const part = textPart('')
    return [
      responsesFrame('response.created', 0, { response }),
      responsesFrame('response.in_progress', 1, { response }),
      responsesFrame('response.output_item.added', 2, {
        output_index: 0,
        item: { ...messageItem(null) },
      }),
      responsesFrame('response.content_part.added', 3, { ...place, part }),
    ].join('')
  },
  token: (text, index) =>
    responsesFrame('response.output_text.delta', openingEvents + index, {
      ...place,
      delta: text,
      logprobs: [],
    }),
  closing(plan, text) {
    const first = openingEvents + plan.tokens
    return [
      responsesFrame('response.output_text.done', first, { ...place, text, logprobs: [] }),
      responsesFrame('response.content_part.done', first + 1, { ...place, part: textPart(text) }),
      responsesFrame('response.output_item.done', first + 2, {
        output_index: 0,
        item: messageItem(text),
      }),
      responsesFrame('response.completed', first + 3, { response: responseObject(plan, text) }),
      doneFrame,
    ].join('')
  },
  body: (plan, text) => JSON.stringify(responseObject(plan, text)),
}

function responsesFrame(type: string, sequenceNumber: number, fields: object): string {
  const event = { type, sequence_number: sequenceNumber, ...fields }
  return `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`
}

function textPart(text: string) {
  return { type: 'output_text', text, annotations: [] }
}

function messageItem(text: string | null) {
  return {
    id: itemId,
    type: 'message',
    status: text === null ? 'in_progress' : 'completed',
    role: 'assistant',
    content: text === null ? [] : [textPart(text)],
  }
}

/** The Response object; without a plan, an empty one at its start. */
function responseObject(plan: Plan | null, text: string | null) {
  return {
    id: 'resp_bench',
    object: 'response',
    created_at: createdS,
    completed_at: plan === null ? null : createdS + 1,
    status: plan === null ? 'in_progress' : 'completed',
    model: modelName,
    output: text === null ? [] : [messageItem(text)],
    error: null,
    incomplete_details: null,
    instructions: null,
    previous_response_id: null,
    tools: [],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    text: { format: { type: 'text' } },
    reasoning: null,
    temperature: 1,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    truncation: 'disabled',
    max_output_tokens: null,
    max_tool_calls: null,
    store: false,
    background: false,
    service_tier: 'default',
    metadata: {},
    safety_identifier: null,
    prompt_cache_key: null,
    usage:
      plan === null
        ? null
        : {
            input_tokens: inputTokens,
            input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
            output_tokens: plan.tokens,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: inputTokens + plan.tokens,
          },
  }
}
