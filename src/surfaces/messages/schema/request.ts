import { Type } from '@sinclair/typebox'
import {
  anyObject,
  arrayOf,
  boolean,
  expecting,
  integerFrom,
  number,
  object,
  oneOf,
  optional,
  type ShallowStatic,
  string,
  stringOr,
} from '#api/request-schema.ts'
import { inputBlock, textBlock } from './input-blocks.ts'

/** The request bodies and headers of the Messages API: the only description of their fields. */

export const message = object(
  {
    role: oneOf(
      ['user', 'assistant', 'system'],
      'Consecutive messages of one role are one turn. `system` instructs within a conversation.',
    ),
    content: stringOr(Type.Array(inputBlock), 'Text, or content blocks.'),
  },
  { $id: 'InputMessage' },
)

const toolName = (description: string) =>
  expecting(
    '1 to 128 letters, digits, underscores or dashes',
    Type.String({ description, pattern: '^[a-zA-Z0-9_-]{1,128}$' }),
  )

export const customTool = object(
  {
    type: optional(Type.String()),
    name: toolName('Unique within the request.'),
    input_schema: anyObject('JSON Schema of the type `object`.'),
    description: optional(string('Describes the tool to the model.')),
    strict: optional(boolean('Whether arguments must conform to the schema.')),
    defer_loading: optional(
      boolean('Whether the tool is hidden until the conversation refers to it.'),
    ),
  },
  { $id: 'CustomMessageTool', description: 'A tool that the client runs.' },
)

const vendorTool = object(
  { type: Type.Intersect([Type.String(), Type.Not(Type.Literal('custom'))]) },
  {
    $id: 'VendorTool',
    description:
      'A tool that the protocol knows by its type. Upstreams of the same protocol get it as sent. For others, `bash_*`, `text_editor_*` and `memory_*`, which the client runs, become functions, and `tool_search_tool_*` makes every deferred tool visible. `web_search_*` is run by the gateway if the operator has configured a search; any other type is refused with `tool_not_supported`, or dropped if the operator says so (`unsupported_tools`).',
  },
)

const disableParallel = optional(boolean('Whether to allow at most one call.'))

export const toolChoiceFields = object(
  {
    type: oneOf(['auto', 'any', 'none'], 'Whether the model may or must call a tool.'),
    disable_parallel_tool_use: disableParallel,
  },
  { $id: 'MessageToolChoice' },
)
export const forcedToolChoice = object(
  {
    type: Type.Literal('tool'),
    name: Type.String({ minLength: 1, description: 'The tool that must be called.' }),
    disable_parallel_tool_use: disableParallel,
  },
  { $id: 'MessageForcedTool' },
)

const display = optional(string('`omitted`: thinking blocks contain no text.'))
const budget = integerFrom(
  0,
  'For upstreams that only know levels: up to 8,191 is `low`, up to 24,575 `medium`, above `high`.',
)

export const budgetThinking = object(
  { type: Type.Literal('enabled'), budget_tokens: budget, display },
  { $id: 'ThinkingBudget' },
)
export const thinkingFields = object(
  {
    type: oneOf(['adaptive', 'disabled', 'between_tools'], 'Whether a reasoning model thinks.'),
    budget_tokens: optional(budget),
    display,
  },
  { $id: 'ThinkingMode' },
)

export const schemaFormat = object({
  type: Type.Literal('json_schema'),
  schema: anyObject('JSON Schema of the output. The gateway validates the output against it.'),
})

export const outputConfig = object(
  {
    effort: optional(
      string('How much effort the model spends: `low`, `medium`, `high`, `xhigh`, `max`.'),
    ),
    format: optional(schemaFormat),
  },
  { description: 'The effort and the format of the output.' },
)

export const metadataFields = object(
  { user_id: optional(string('Identifies the end user; upstreams get a hash of it.')) },
  { description: 'About the request.' },
)

/** A web search that the gateway runs. Only the fields that it honours; upstreams get the tool as sent. */
export const webSearchTool = object({
  type: Type.String(),
  name: Type.String(),
  allowed_domains: optional(arrayOf(Type.String(), 'Only pages of these domains.')),
  blocked_domains: optional(arrayOf(Type.String(), 'No pages of these domains.')),
  max_uses: optional(integerFrom(1, 'The most searches of the response.')),
  user_location: optional(anyObject('`city`, `region`, `country` and `timezone` of the user.')),
})

export const mcpToolConfiguration = object({
  enabled: optional(boolean('Whether the server is used.')),
  allowed_tools: optional(arrayOf(Type.String(), 'The tools that the model may call.')),
})

export const mcpServer = object(
  {
    type: Type.Literal('url'),
    name: expecting(
      'a letter, followed by up to 63 letters, digits, underscores or dashes',
      Type.String({
        description: 'Unique within the request.',
        pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$',
      }),
    ),
    url: Type.String({
      minLength: 1,
      description: 'The URL of a configured server, or a public https URL on an allowed host.',
    }),
    authorization_token: optional(string('Sent to the server as a bearer token.')),
    tool_configuration: optional(mcpToolConfiguration),
  },
  {
    $id: 'MessageMcpServer',
    description:
      'A remote MCP server. Upstreams of the same protocol call it themselves; for others the gateway does.',
  },
)

export const mcpToolset = object({
  type: Type.Literal('mcp_toolset'),
  mcp_server_name: Type.String({ minLength: 1 }),
  default_config: optional(anyObject('`enabled` of tools without an entry in `configs`.')),
  configs: optional(anyObject('`enabled` by the name of a tool.')),
})

const promptFields = {
  model: Type.String({
    description: 'A name from the model list of this API, or from `/v1/models`.',
    minLength: 1,
    maxLength: 256,
  }),
  messages: Type.Array(message, {
    minItems: 1,
    description:
      'The conversation. It may end with an assistant message, which the response continues.',
  }),
  system: optional(stringOr(Type.Array(textBlock), 'Instructions.')),
  tools: optional(
    arrayOf(Type.Union([customTool, vendorTool]), 'The tools that the model may call.'),
  ),
  mcp_servers: optional(arrayOf(mcpServer, 'Remote servers whose tools the model may call.')),
  tool_choice: optional(
    Type.Union([toolChoiceFields, forcedToolChoice], {
      description: '`any`: the model must call a tool; `tool`: it must call the named one.',
    }),
  ),
  thinking: optional(
    Type.Union([budgetThinking, thinkingFields], {
      description: '`between_tools`: only after tool results.',
    }),
  ),
  output_config: optional(outputConfig),
  output_format: optional({ ...schemaFormat, description: 'Deprecated: `output_config.format`.' }),
}

/** Sampling parameters exist in the older dialects only. */
export const samplingFields = object({
  temperature: optional(number(0, 2, 'Sampling temperature.')),
  top_p: optional(number(0, 1, 'Nucleus sampling: the probability mass that is considered.')),
  top_k: optional(
    integerFrom(0, 'How many of the most likely tokens are considered; 0: the model decides.'),
  ),
})

const createFields = {
  ...promptFields,
  max_tokens: integerFrom(
    0,
    'Maximum number of output tokens. 0: nothing is generated. A context window with less space takes precedence.',
  ),
  stream: optional(boolean('Whether to stream the message as server-sent events.')),
  stop_sequences: optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: 64,
      description: 'Strings that end the output, whether the upstream supports them or not.',
    }),
  ),
  metadata: optional(metadataFields),
  service_tier: optional(string('`auto` or `standard_only`; other values are ignored.')),
}

/** What the parser reads: `samplingFields` depend on the dialect. */
export const messageBody = object(createFields)
export const countBody = object(promptFields)
export type PromptBody = ShallowStatic<typeof countBody>

export const createMessage = object(
  { ...createFields, ...samplingFields.properties },
  {
    $id: 'CreateMessage',
    description: `Null counts as absent, and unknown fields are ignored, except by upstreams of the same protocol, which get
the body unchanged. \`temperature\`, \`top_p\` and \`top_k\` apply if \`anthropic-version\` is 2023-06-01 or
older. \`thread\` is refused.`,
  },
)

export const countTokens = object(promptFields, {
  $id: 'CountMessageTokens',
  description: 'Other fields are ignored.',
})

export const requestHeaders = Type.Object({
  'anthropic-version': Type.Optional(
    Type.String({
      default: '2023-06-01',
      description: 'The dialect. Unknown versions are read as the newest, `2026-10-21`.',
    }),
  ),
  'anthropic-beta': Type.Optional(
    Type.String({ description: 'Forwarded to upstreams of the same protocol.' }),
  ),
  'x-claude-code-session-id': Type.Optional(
    Type.String({ description: 'Identifies a session: its requests go to the same upstream.' }),
  ),
})
