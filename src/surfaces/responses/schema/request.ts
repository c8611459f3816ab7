import { type Static, Type } from '@sinclair/typebox'
import {
  anyObject,
  arrayOf,
  boolean,
  expecting,
  integer,
  integerFrom,
  nonEmptyString,
  number,
  object,
  oneOf,
  optional,
  type ShallowStatic,
  string,
  stringOr,
  typed,
} from '#api/request-schema.ts'
import type { Frozen } from '#lib/frozen.ts'
import { inputItem } from './input-items.ts'
import { tool, toolChoice, toolName } from './tools.ts'

/** The body of `POST /v1/responses`, and the fields of a response that repeat it. */

export const jsonSchemaFormat = object({
  type: Type.Literal('json_schema'),
  name: toolName('The name of the format.'),
  description: optional(string('Describes the format to the model.')),
  schema: anyObject('JSON Schema of the output.'),
  strict: optional(boolean('Forwarded to the upstream; the output is validated in any case.')),
})

export const textOptions = object(
  {
    format: optional(
      Type.Union([typed('text'), typed('json_object'), jsonSchemaFormat], {
        description:
          'The gateway validates JSON output: invalid output ends the response as `incomplete` with the reason `invalid_output`.',
      }),
    ),
    verbosity: optional(oneOf(['low', 'medium', 'high'], 'How detailed the output is.')),
  },
  { description: 'The format of text output.' },
)

const summaryLevels = ['auto', 'concise', 'detailed'] as const

export const reasoningOptions = object(
  {
    effort: optional(
      oneOf(
        ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
        'How much effort a reasoning model spends.',
      ),
    ),
    summary: optional(oneOf(summaryLevels, 'How detailed the summary of the reasoning is.')),
    generate_summary: optional(oneOf(summaryLevels, 'Deprecated: use `summary`.')),
  },
  { description: 'Options of reasoning models.' },
)

export const contextManagementEntry = object({
  type: nonEmptyString('`compaction`; entries of other types are ignored.'),
  compact_threshold: optional(
    integerFrom(
      1,
      'Number of context tokens that triggers a compaction. Default: 80 % of the context window of the model.',
    ),
  ),
})

export const metadata = Type.Record(
  Type.String({ maxLength: 64 }),
  Type.String({ maxLength: 512 }),
  {
    maxProperties: 16,
    description:
      'Up to 16 strings stored with the object: keys of up to 64 characters, values of up to 512.',
  },
)

export const createResponse = object(
  {
    model: Type.String({
      description: 'A name from the list of models: a model of mode `generate`, or an agent.',
      minLength: 1,
      maxLength: 256,
    }),
    input: optional(
      stringOr(
        Type.Array(inputItem),
        'Text, or items. Optional with `previous_response_id` or `conversation`.',
      ),
    ),
    instructions: optional(
      string('A system message before the context. Following responses do not inherit it.'),
    ),
    stream: optional(boolean('Whether to stream the response as server-sent events.')),
    tools: optional(arrayOf(tool, 'The tools that the model may call.')),
    tool_choice: optional(toolChoice),
    parallel_tool_calls: optional(
      boolean('Whether the model may make several calls at once. Default: true.'),
    ),
    max_tool_calls: optional(
      integerFrom(1, 'Maximum number of calls of tools that the gateway runs itself.'),
    ),
    text: optional(textOptions),
    reasoning: optional(reasoningOptions),
    include: optional(
      arrayOf(
        Type.String(),
        `Additional output: \`reasoning.encrypted_content\` (encrypted reasoning instead of plain text),
\`message.output_text.logprobs\`, \`file_search_call.results\`. Other values are ignored.`,
      ),
    ),
    store: optional(
      boolean(
        'Whether the response can be retrieved, continued and cancelled later. Default: true.',
      ),
    ),
    previous_response_id: optional(
      string(
        'A finished stored response; its input and output, and those of its predecessors, are the context.',
      ),
    ),
    conversation: optional(
      expecting(
        'the id of a conversation or an object with its id',
        stringOr(
          object({ id: Type.String() }),
          'The conversation whose items are the context, and to which input and output are appended. Not with `previous_response_id`.',
        ),
      ),
    ),
    background: optional(
      boolean(
        'Whether the response is queued and runs independently of its connection. Requires `store`. Not over a WebSocket.',
      ),
    ),
    generate: optional(
      boolean(
        'Over a WebSocket only: false stores the input with the connection without calling the model.',
      ),
    ),
    context_management: optional(
      arrayOf(
        contextManagementEntry,
        'How a long context is shortened before the model is called.',
      ),
    ),
    max_output_tokens: optional(
      integerFrom(1, 'Maximum number of output tokens, including reasoning.'),
    ),
    temperature: optional(number(0, 2, 'Sampling temperature.')),
    top_p: optional(number(0, 1, 'Nucleus sampling: the probability mass that is considered.')),
    presence_penalty: optional(number(-2, 2, 'Penalises tokens that have already appeared.')),
    frequency_penalty: optional(number(-2, 2, 'Penalises tokens by how often they appeared.')),
    top_logprobs: optional(
      integer(0, 20, 'How many alternative tokens are returned for each token.'),
    ),
    truncation: optional(
      oneOf(['auto', 'disabled'], 'Only echoed: a context that is too long is always refused.'),
    ),
    metadata: optional(metadata),
    service_tier: optional(
      string(
        '`flex`: the request yields to others while all upstreams are busy. Forwarded to upstreams that support it.',
      ),
    ),
    prompt_cache_key: optional(
      string(
        'Identifies a session: its requests go to the same upstream, which may have cached the prompt.',
      ),
    ),
    prompt_cache_options: optional(
      anyObject('Forwarded to upstreams of this format; ignored by others.'),
    ),
    safety_identifier: optional(string('Identifies the end user; forwarded to the upstream.')),
    user: optional(string('Deprecated: use `safety_identifier`.')),
  },
  {
    $id: 'CreateResponse',
    description: 'Null counts as absent, and unknown fields are ignored.',
  },
)
export type CreateResponse = ShallowStatic<typeof createResponse>

/** An object of which only the type is known. */
const typedObject = Type.Unsafe<{ type: string; [field: string]: unknown }>(
  Type.Object({ type: Type.String() }, { additionalProperties: true }),
)
const nullableString = () => Type.Union([Type.String(), Type.Null()])

/** The fields of a response that repeat the request, with the defaults that applied. */
export const responseEcho = Type.Object({
  model: Type.String({ description: 'The name that was sent.' }),
  instructions: nullableString(),
  previous_response_id: nullableString(),
  conversation: Type.Optional(Type.Object({ id: Type.String() })),
  tools: Type.Array(typedObject, {
    description: 'As sent, without the credentials of MCP servers.',
  }),
  tool_choice: Type.Union([Type.String(), anyObject('As sent.')]),
  parallel_tool_calls: Type.Boolean(),
  text: Type.Object({
    format: typedObject,
    verbosity: Type.Optional(Type.String()),
  }),
  reasoning: Type.Object({ effort: nullableString(), summary: nullableString() }),
  temperature: Type.Number(),
  top_p: Type.Number(),
  presence_penalty: Type.Number(),
  frequency_penalty: Type.Number(),
  top_logprobs: Type.Integer(),
  truncation: oneOf(['auto', 'disabled'], 'As sent.'),
  max_output_tokens: Type.Union([Type.Integer(), Type.Null()]),
  max_tool_calls: Type.Union([Type.Integer(), Type.Null()]),
  store: Type.Boolean({ description: 'Also false if the database was unavailable for too long.' }),
  background: Type.Boolean(),
  service_tier: Type.String(),
  metadata: Type.Record(Type.String(), Type.String()),
  safety_identifier: nullableString(),
  prompt_cache_key: nullableString(),
})
export type ResponseEcho = Frozen<Static<typeof responseEcho>>

/** The fields that locate the history of a request. They are read before the others. */
export const historyFields = Type.Pick(createResponse, ['previous_response_id', 'conversation'])

export const compactRequest = Type.Pick(
  createResponse,
  ['model', 'input', 'instructions', 'previous_response_id', 'service_tier'],
  { $id: 'CompactRequest', description: 'Unknown fields are ignored.' },
)
