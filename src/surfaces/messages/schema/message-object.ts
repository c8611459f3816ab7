import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { ofOtherType } from '#api/described.ts'
import { nullable } from '#api/shapes.ts'

/** The Message object and its content blocks. */

/** Additional fields of an upstream of the same protocol are passed on. */
const open = { additionalProperties: true }

const block = (type: string, $id: string, fields: TProperties, description?: string) =>
  Type.Object(
    { type: Type.Literal(type), ...fields },
    { $id, ...open, ...(description === undefined ? {} : { description }) },
  )

export const citation = Type.Union(
  [
    Type.Object(
      {
        type: Type.Literal('search_result_location'),
        cited_text: Type.String({ description: 'The cited passage of a file.' }),
        search_result_index: Type.Integer(),
        source: Type.String({ description: 'The file: `/v1/files/{id}`.' }),
        title: nullable(Type.String(), 'The name of the file.'),
        start_block_index: Type.Integer(),
        end_block_index: Type.Integer(),
      },
      open,
    ),
    Type.Object(
      {
        type: Type.Literal('web_search_result_location'),
        url: Type.String(),
        title: nullable(Type.String(), 'The title of the page.'),
        cited_text: Type.String(),
        encrypted_index: Type.String(),
      },
      open,
    ),
    Type.Object(
      {
        type: Type.Union([
          ...['char_location', 'page_location', 'content_block_location'].map((type) =>
            Type.Literal(type),
          ),
        ]),
        cited_text: Type.String(),
      },
      { ...open, $id: 'DocumentCitation', description: 'From upstreams of the same protocol.' },
    ),
  ],
  { $id: 'Citation' },
)

const text = block('text', 'TextBlock', {
  text: Type.String(),
  citations: Type.Optional(nullable(Type.Array(citation), 'The sources of the text.')),
})

const thinking = block(
  'thinking',
  'ThinkingBlock',
  {
    thinking: Type.String({ description: 'Empty if it is not disclosed.' }),
    signature: Type.Optional(
      Type.String({ description: 'Encrypted thinking. Can be sent back by the same user only.' }),
    ),
  },
  'The thinking of a model. Send it back with the calls that follow it.',
)

const redactedThinking = block('redacted_thinking', 'RedactedThinkingBlock', {
  data: Type.String({ description: 'Encrypted thinking. Can be sent back by the same user only.' }),
})

const input = Type.Object({}, { description: 'The arguments.' })
const caller = Type.Optional(Type.Object({ type: Type.String() }, open))

const toolUse = block('tool_use', 'ToolUseBlock', {
  id: Type.String({ description: 'Links the result to its call.' }),
  name: Type.String(),
  input,
  caller,
})

const hosted = 'The gateway or the upstream ran the tool; its result follows.'
const serverToolUse = block(
  'server_tool_use',
  'ServerToolUseBlock',
  { id: Type.String(), name: Type.String(), input, caller },
  hosted,
)
const mcpToolUse = block(
  'mcp_tool_use',
  'McpToolUseBlock',
  { id: Type.String(), name: Type.String(), server_name: Type.String(), input },
  hosted,
)

const mcpToolResult = block('mcp_tool_result', 'McpToolResultBlock', {
  tool_use_id: Type.String(),
  is_error: Type.Boolean(),
  content: Type.Union([Type.String(), Type.Array(Type.Object({ type: Type.String() }, open))]),
})
const webSearchResult = block('web_search_tool_result', 'WebSearchToolResultBlock', {
  tool_use_id: Type.String(),
  content: Type.Unknown({ description: 'A list of `web_search_result`, or an error.' }),
})

const known: readonly TObject[] = [
  text,
  thinking,
  redactedThinking,
  toolUse,
  serverToolUse,
  mcpToolUse,
  mcpToolResult,
  webSearchResult,
]

export const contentBlock: TSchema = Type.Union(
  [
    ...known,
    ofOtherType(known, {
      $id: 'UpstreamBlock',
      description: 'From an upstream of the same protocol, unchanged.',
    }),
  ],
  { $id: 'ContentBlock' },
)

const count = (description: string) => Type.Optional(nullable(Type.Integer(), description))

/** Estimated at the beginning of a stream, counted at the end. */
export const messageWarning = Type.Object(
  { code: Type.String(), message: Type.String() },
  {
    $id: 'MessageWarning',
    description:
      '`output_omitted`: the model returned output that messages have no blocks for, such as images; the message names it.',
  },
)

const usageFields = {
  input_tokens: Type.Integer({ description: 'Without tokens that the cache read or wrote.' }),
  output_tokens: Type.Integer(),
  cache_creation_input_tokens: count('Input tokens written to the prompt cache.'),
  cache_read_input_tokens: count('Input tokens read from the prompt cache.'),
  cache_creation: Type.Optional(
    nullable(
      Type.Object(
        {
          ephemeral_5m_input_tokens: Type.Integer(),
          ephemeral_1h_input_tokens: Type.Integer(),
        },
        open,
      ),
      'Cache writes by lifetime; five minutes if unknown.',
    ),
  ),
  output_tokens_details: Type.Optional(
    nullable(
      Type.Object({ thinking_tokens: Type.Integer() }, open),
      'Details of the output tokens.',
    ),
  ),
  server_tool_use: Type.Optional(
    nullable(
      Type.Object(
        {
          web_search_requests: Type.Optional(Type.Integer()),
          web_fetch_requests: Type.Optional(Type.Integer()),
        },
        open,
      ),
      'Tools that the upstream ran.',
    ),
  ),
  service_tier: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  speed: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  inference_geo: Type.Optional(Type.Union([Type.String(), Type.Null()])),
}

const usage = Type.Object(usageFields, { $id: 'MessageUsage', ...open })

export const endUsage = Type.Object(
  { ...usageFields, input_tokens: count(usageFields.input_tokens.description ?? '') },
  { $id: 'MessageEndUsage', ...open, description: 'Of the complete message.' },
)

const stopReason = Type.Union(
  [
    ...['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal'],
    ...['model_context_window_exceeded', 'compaction'],
  ].map((reason) => Type.Literal(reason)),
  { description: 'Why the message ended.' },
)

/** Part of the last event of a stream and of the complete message. */
export const endFields = {
  stop_reason: nullable(stopReason, 'Why the message ended; null before its end.'),
  stop_sequence: Type.Optional(
    nullable(Type.String(), 'The stop sequence that ended the message.'),
  ),
  stop_details: Type.Optional(
    nullable(
      Type.Object(
        {
          type: Type.String(),
          category: Type.Optional(Type.Union([Type.String(), Type.Null()])),
          explanation: Type.Optional(Type.Union([Type.String(), Type.Null()])),
        },
        open,
      ),
      'Details of a refusal.',
    ),
  ),
  container: Type.Optional(Type.Union([Type.Object({}), Type.Null()])),
}

export const messageObject = Type.Object(
  {
    id: Type.String({ description: '`msg_…`' }),
    type: Type.Literal('message'),
    role: Type.Literal('assistant'),
    model: Type.String({ description: 'The name that was sent.' }),
    content: Type.Array(contentBlock),
    ...endFields,
    diagnostics: Type.Optional(Type.Union([Type.Object({}), Type.Null()])),
    usage,
    warning: Type.Optional(messageWarning),
  },
  { $id: 'Message', ...open },
)

export const tokenCount = Type.Object(
  { input_tokens: Type.Integer() },
  { $id: 'MessageTokenCount' },
)
