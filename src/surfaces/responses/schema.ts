import { type Static, Type } from '@sinclair/typebox'
import type { JsonObject } from '#lib/json.ts'

/**
 * The request shapes of `POST /v1/responses`, and the only source of their types.
 *
 * Each object stands for itself: what lies deeper has a schema of its own and is read once its
 * `type` is known, so that an error names the field at fault. Nothing says null, because a field
 * that is null counts as not given, as the SDKs mean it; fields that are not listed pass. A
 * `description` completes the sentence "<field> must be …".
 */

const text = (description = 'a text') => Type.String({ description })
const filled = (description = 'a text that is not empty') =>
  Type.String({ description, minLength: 1 })
const flag = () => Type.Boolean({ description: 'true or false' })
const list = (description: string) => Type.Array(Type.Unknown(), { description })
const object = () => Type.Unsafe<JsonObject>(Type.Object({}, { description: 'an object' }))
const oneOf = <Word extends string>(...words: Word[]) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    { description: `one of ${words.join(', ')}` },
  )
const range = (minimum: number, maximum: number) =>
  Type.Number({ description: `a number from ${minimum} to ${maximum}`, minimum, maximum })
const count = () =>
  Type.Integer({
    description: 'a whole number of 1 or more',
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
  })
const name = () =>
  Type.String({
    description: '1 to 64 letters, digits, underscores or dashes',
    pattern: '^[a-zA-Z0-9_-]{1,64}$',
  })
const textOr = (items: string) =>
  Type.Union([Type.String(), Type.Array(Type.Unknown())], {
    description: `a text or an array of ${items}`,
  })

/** What is read of a body before the rest. */
export const stateFields = Type.Object({
  input: Type.Optional(Type.Unknown()),
  previous_response_id: Type.Optional(text()),
  conversation: Type.Optional(Type.Unknown()),
})

export const createBody = Type.Object({
  model: Type.String({ description: 'the name of a model', minLength: 1, maxLength: 256 }),
  input: Type.Optional(textOr('items')),
  instructions: Type.Optional(text()),
  stream: Type.Optional(flag()),
  tools: Type.Optional(list('an array of tools')),
  tool_choice: Type.Optional(
    Type.Union([Type.String(), object()], {
      description: 'none, auto, required or an object that names a tool',
    }),
  ),
  parallel_tool_calls: Type.Optional(flag()),
  max_tool_calls: Type.Optional(count()),
  text: Type.Optional(object()),
  reasoning: Type.Optional(object()),
  include: Type.Optional(list('an array of texts')),
  store: Type.Optional(flag()),
  previous_response_id: Type.Optional(text()),
  conversation: Type.Optional(Type.Unknown()),
  background: Type.Optional(flag()),
  generate: Type.Optional(flag()),
  context_management: Type.Optional(list('an array of objects')),
  max_output_tokens: Type.Optional(count()),
  temperature: Type.Optional(range(0, 2)),
  top_p: Type.Optional(range(0, 1)),
  presence_penalty: Type.Optional(range(-2, 2)),
  frequency_penalty: Type.Optional(range(-2, 2)),
  top_logprobs: Type.Optional(
    Type.Integer({ description: 'a whole number from 0 to 20', minimum: 0, maximum: 20 }),
  ),
  truncation: Type.Optional(oneOf('auto', 'disabled')),
  metadata: Type.Optional(object()),
  service_tier: Type.Optional(text()),
  prompt_cache_key: Type.Optional(text()),
  safety_identifier: Type.Optional(text()),
  user: Type.Optional(text()),
})
export type CreateBody = Static<typeof createBody>

export const contextManagementEntry = Type.Object({
  type: filled(),
  compact_threshold: Type.Optional(count()),
})

// Input items

export const messageItem = Type.Object({
  role: oneOf('user', 'assistant', 'system', 'developer'),
  content: textOr('content parts'),
  phase: Type.Optional(text()),
})

export const functionCallItem = Type.Object({
  call_id: filled(),
  name: filled(),
  namespace: Type.Optional(filled()),
  arguments: text('a JSON text'),
})

export const customToolCallItem = Type.Object({
  call_id: filled(),
  name: filled(),
  namespace: Type.Optional(filled()),
  input: text(),
})

/** Of a function call and of a custom tool call alike. */
export const toolOutputItem = Type.Object({
  call_id: filled(),
  output: textOr('content parts'),
})

export const reasoningItem = Type.Object({
  summary: Type.Optional(list('an array of summary parts')),
  content: Type.Optional(list('an array of reasoning parts')),
  encrypted_content: Type.Optional(text()),
})

export const compactionItem = Type.Object({ encrypted_content: filled() })

export const itemReference = Type.Object({ id: filled() })

export const mcpCallItem = Type.Object({
  server_label: filled(),
  name: filled(),
  arguments: text('a JSON text'),
  approval_request_id: Type.Optional(filled()),
  output: Type.Optional(text()),
  error: Type.Optional(Type.Unknown()),
})

export const mcpListItem = Type.Object({
  server_label: filled(),
  tools: list('an array of tools'),
  error: Type.Optional(Type.Unknown()),
})

export const mcpListedTool = Type.Object({
  name: filled(),
  description: Type.Optional(text()),
  input_schema: object(),
  annotations: Type.Optional(object()),
})

export const mcpApprovalRequestItem = Type.Object({
  id: filled(),
  server_label: filled(),
  name: filled(),
  arguments: text('a JSON text'),
})

export const mcpApprovalResponseItem = Type.Object({
  approval_request_id: filled(),
  approve: flag(),
  reason: Type.Optional(text()),
})

export const fileSearchCallItem = Type.Object({
  queries: Type.Optional(list('an array of texts')),
  results: Type.Optional(list('an array of results')),
})

// Content parts

export const textPart = Type.Object({ text: text() })

export const refusalPart = Type.Object({ refusal: text() })

const urlPattern = '^([hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:).'
const url = () => Type.String({ description: 'an http, https or data URL', pattern: urlPattern })

export const imagePart = Type.Object({
  image_url: Type.Optional(url()),
  file_id: Type.Optional(text()),
  detail: Type.Optional(oneOf('low', 'high', 'auto', 'original')),
})

export const filePart = Type.Object({
  file_data: Type.Optional(
    Type.String({
      description: 'a data URL or base64 text',
      // Not an http URL, which would bypass the validation of `file_url`.
      pattern: '^([dD][aA][tT][aA]:.|[^:\\s]{1,64}$|[^:\\s]{64})',
    }),
  ),
  file_url: Type.Optional(url()),
  file_id: Type.Optional(text()),
  filename: Type.Optional(text()),
})

export const functionTool = Type.Object({
  name: name(),
  description: Type.Optional(text()),
  parameters: Type.Optional(object()),
  strict: Type.Optional(flag()),
})

export const customTool = Type.Object({
  name: name(),
  description: Type.Optional(text()),
  format: Type.Optional(object()),
})

export const grammarFormat = Type.Object({
  syntax: oneOf('lark', 'regex'),
  definition: filled(),
})

export const namespaceTool = Type.Object({
  name: name(),
  description: Type.Optional(text()),
  tools: list('an array of tools'),
})

export const mcpTool = Type.Object({
  server_label: Type.String({
    description: 'a letter, and up to 63 letters, digits, underscores or dashes',
    pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$',
  }),
  server_url: Type.Optional(filled()),
  server_description: Type.Optional(text()),
  authorization: Type.Optional(filled()),
  headers: Type.Optional(object()),
  allowed_tools: Type.Optional(Type.Unknown()),
  require_approval: Type.Optional(Type.Unknown()),
})

export const fileSearchTool = Type.Object({
  vector_store_ids: Type.Array(Type.Unknown(), {
    description: 'an array of 1 to 32 names or ids of collections',
    minItems: 1,
    maxItems: 32,
  }),
  filters: Type.Optional(object()),
  max_num_results: Type.Optional(
    Type.Integer({ description: 'a whole number from 1 to 50', minimum: 1, maximum: 50 }),
  ),
  ranking_options: Type.Optional(object()),
})

export const rankingOptions = Type.Object({
  ranker: Type.Optional(text()),
  score_threshold: Type.Optional(range(0, 1)),
})

/** Which tools of a server are meant. */
export const mcpToolFilter = Type.Object({
  tool_names: Type.Optional(list('an array of names')),
  read_only: Type.Optional(flag()),
})

export const mcpApprovalFilters = Type.Object({
  always: Type.Optional(object()),
  never: Type.Optional(object()),
})

/** Forces a tool of a server, or is one entry of an allowed list. */
export const toolChoiceByServer = Type.Object({
  server_label: filled(),
  name: Type.Optional(filled()),
})

/** Forces one tool, or is one entry of an allowed list. */
export const toolChoiceByName = Type.Object({
  name: filled(),
  namespace: Type.Optional(filled()),
})

export const allowedTools = Type.Object({
  mode: Type.Optional(oneOf('auto', 'required')),
  tools: list('an array of tools'),
})

export const textOptions = Type.Object({
  format: Type.Optional(object()),
  verbosity: Type.Optional(oneOf('low', 'medium', 'high')),
})

export const jsonSchemaFormat = Type.Object({
  name: name(),
  description: Type.Optional(text()),
  schema: object(),
  strict: Type.Optional(flag()),
})

export const reasoningOptions = Type.Object({
  effort: Type.Optional(oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
  summary: Type.Optional(oneOf('auto', 'concise', 'detailed')),
  /** The old name of `summary`. */
  generate_summary: Type.Optional(oneOf('auto', 'concise', 'detailed')),
})
