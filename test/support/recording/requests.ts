import type { RecordedProtocol } from '#test/support/recordings.ts'
import type { Conversation } from './conversations.ts'

export const protocols: readonly RecordedProtocol[] = ['chat-completions', 'responses', 'messages']

export const pathOf = {
  'chat-completions': '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
} as const

const user = 'What is the weather in Paris?'
const toolList = [
  {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    },
  },
  { name: 'now', description: 'The time.', parameters: { type: 'object', properties: {} } },
  {
    name: 'plan_trip',
    description: 'Plans a trip.',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'array', items: { type: 'object' } },
        note: { type: 'string' },
        exact: { type: 'boolean' },
      },
    },
  },
]
const made = { id: 'call_1', name: 'get_weather', arguments: { city: 'Paris' } }
const found = '18 degrees'

/** The conversation's question in the terms of a protocol; null where the protocol has none. */
export function requestFor(protocol: RecordedProtocol, { ask = {} }: Conversation): object | null {
  if (ask.chatOptions !== undefined && protocol !== 'chat-completions') return null
  switch (protocol) {
    case 'chat-completions':
      return chatBody(ask)
    case 'responses':
      return ask.stop === undefined ? responsesBody(ask) : null
    case 'messages':
      return ask.schema === undefined ? messagesBody(ask) : null
  }
}

/** Requests that a server refuses, for each protocol. */
export const refused = {
  'chat-completions': {
    'error-context': { messages: [{ role: 'user', content: user.repeat(100) }] },
    'error-messages': { messages: 'none' },
    'error-tools': { messages: [{ role: 'user', content: user }], tools: [{ type: 'x' }] },
  },
  responses: {
    'error-context': { input: user.repeat(100) },
    'error-input': { input: 7 },
  },
  messages: {
    'error-context': { max_tokens: 9, messages: [{ role: 'user', content: user.repeat(100) }] },
  },
} as const

function chatBody({ tools, schema, maxTokens, stop, afterCall, chatOptions }: Asked): object {
  const { id, name } = made
  const calling = { name, arguments: JSON.stringify(made.arguments) }
  return {
    messages: [
      { role: 'user', content: user },
      ...(afterCall
        ? [
            {
              role: 'assistant',
              content: '',
              tool_calls: [{ id, type: 'function', function: calling }],
            },
            { role: 'tool', tool_call_id: id, content: found },
          ]
        : []),
    ],
    max_tokens: maxTokens ?? defaultMaxTokens,
    ...(tools
      ? {
          tools: toolList.map((tool) => ({ type: 'function', function: tool })),
          parallel_tool_calls: true,
        }
      : {}),
    ...(schema
      ? { response_format: { type: 'json_schema', json_schema: { name: 'weather', schema } } }
      : {}),
    ...(stop ? { stop: [stop] } : {}),
    ...chatOptions,
  }
}

function responsesBody({ tools, schema, maxTokens, afterCall }: Asked): object {
  const { id, name } = made
  return {
    input: [
      { role: 'user', content: user },
      ...(afterCall
        ? [
            {
              type: 'function_call',
              call_id: id,
              name,
              arguments: JSON.stringify(made.arguments),
            },
            { type: 'function_call_output', call_id: id, output: found },
          ]
        : []),
    ],
    max_output_tokens: maxTokens ?? defaultMaxTokens,
    ...(tools
      ? {
          tools: toolList.map((tool) => ({ type: 'function', ...tool, strict: false })),
          parallel_tool_calls: true,
        }
      : {}),
    ...(schema
      ? { text: { format: { type: 'json_schema', name: 'weather', schema, strict: true } } }
      : {}),
  }
}

function messagesBody({ tools, maxTokens, stop, afterCall }: Asked): object {
  const { id, name, arguments: input } = made
  return {
    messages: [
      { role: 'user', content: user },
      ...(afterCall
        ? [
            { role: 'assistant', content: [{ type: 'tool_use', id, name, input }] },
            { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: found }] },
          ]
        : []),
    ],
    max_tokens: maxTokens ?? defaultMaxTokens,
    ...(tools
      ? {
          tools: toolList.map(({ parameters, ...tool }) => ({
            ...tool,
            input_schema: parameters,
          })),
        }
      : {}),
    ...(stop ? { stop_sequences: [stop] } : {}),
  }
}

type Asked = NonNullable<Conversation['ask']>

const defaultMaxTokens = 1_000
