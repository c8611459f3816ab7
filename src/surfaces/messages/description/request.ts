import { type TObject, Type } from '@sinclair/typebox'
import { describeObject } from '#api/described.ts'
import {
  customTool,
  message,
  messageBody,
  metadataFields,
  outputConfig,
  samplingFields,
  schemaFormat,
  thinkingFields,
  toolChoiceFields,
} from '#surfaces/messages/schema.ts'
import { inputBlock, textsOnly } from './input-blocks.ts'

/** The bodies of the surface, as the parser reads them piece by piece. */

const named = (type: string) => ({ type: Type.Literal(type) })

const inputMessage = describeObject(
  message,
  {
    role: 'Neighbours of one role are one turn. `system` instructs in the middle of a conversation.',
    content: Type.Union([Type.String(), Type.Array(inputBlock)], {
      description: 'A text, or blocks.',
    }),
  },
  { $id: 'InputMessage' },
)

const ownTool = describeObject(
  customTool,
  {
    name: 'Once in a request.',
    input_schema: 'A JSON Schema of the type `object`.',
    description: 'What the model reads about it.',
    strict: 'Whether arguments must keep to the schema.',
    defer_loading: 'Whether it is hidden until the conversation names it.',
  },
  {
    own: { type: Type.Optional(Type.Union([Type.String(), Type.Null()])) },
    $id: 'CustomMessageTool',
    description: 'A tool that the caller runs.',
  },
)

const vendorTool = Type.Object(
  { type: Type.Intersect([Type.String(), Type.Not(Type.Literal('custom'))]) },
  {
    $id: 'VendorTool',
    additionalProperties: true,
    description:
      'A tool of the vendor of the protocol: for an upstream of the same protocol, left out for others.',
  },
)

const { name: toolName, disable_parallel_tool_use: single } = toolChoiceFields.properties
const choice = (types: readonly string[], fields: TObject['properties'] = {}) =>
  describeObject(
    Type.Object({ disable_parallel_tool_use: single }),
    { disable_parallel_tool_use: 'Whether at most one call may be made.' },
    { own: { type: Type.Union(types.map((type) => Type.Literal(type))), ...fields } },
  )
const toolChoice = Type.Union(
  [choice(['auto', 'any', 'none']), choice(['tool'], { name: Type.Optional(toolName, false) })],
  { description: '`any`: some tool has to be called; `tool`: the one of this name.' },
)

const thinkingOf = (types: readonly string[], needsBudget = false) => {
  const { budget_tokens: budget, display } = thinkingFields.properties
  const fields = { budget_tokens: needsBudget ? Type.Optional(budget, false) : budget, display }
  return describeObject(
    Type.Object(fields),
    {
      budget_tokens:
        'For upstreams that know levels only: up to 8,191 is `low`, up to 24,575 `medium`, more `high`.',
      display: '`omitted`: blocks of thinking have no text.',
    },
    { own: { type: Type.Union(types.map((type) => Type.Literal(type))) } },
  )
}
const thinking = Type.Union(
  [thinkingOf(['enabled'], true), thinkingOf(['adaptive', 'disabled', 'between_tools'])],
  { description: 'Whether a model that reasons does so. `between_tools`: only after results.' },
)

const answerFormat = describeObject(
  schemaFormat,
  { schema: 'A JSON Schema. The answer is checked by it here.' },
  { own: named('json_schema') },
)

const fields = {
  model: 'A name of the list of models of this surface, or of `/v1/models`.',
  messages: Type.Array(inputMessage, {
    minItems: 1,
    description:
      'The conversation. It may end with a message of the assistant, which the answer goes on from.',
  }),
  system: textsOnly('Instructions.'),
  tools: Type.Array(Type.Union([ownTool, vendorTool]), {
    description: 'What the model may call.',
  }),
  tool_choice: toolChoice,
  thinking,
  output_config: describeObject(
    outputConfig,
    {
      effort: 'How hard the model thinks: `low`, `medium`, `high`, `xhigh`, `max`.',
      format: answerFormat,
    },
    { description: 'The form of the answer, and its effort.' },
  ),
  output_format: { ...answerFormat, description: 'The older place of `output_config.format`.' },
  max_tokens:
    'Where the answer is cut off. 0: nothing is generated. Where the window of the model has less room, that holds.',
  stream: 'Whether the answer is a stream of events.',
  stop_sequences: Type.Array(Type.String({ minLength: 1 }), {
    maxItems: 64,
    description: 'Texts that end the answer, whatever the upstream makes of them.',
  }),
  metadata: describeObject(
    metadataFields,
    { user_id: 'Who asks; upstreams are told a hash of it.' },
    { description: 'About the request.' },
  ),
  service_tier: '`auto` or `standard_only`; others are ignored.',
  thread: null,
}

const sampling = {
  temperature: 'How freely words are chosen.',
  top_p: 'Of the likely words, those that make up so much of the probability.',
  top_k: 'Of so many likely words; 0: the model decides.',
}

const read = Type.Object({ ...messageBody.properties, ...samplingFields.properties })

export const createMessage = describeObject(
  read,
  { ...fields, ...sampling },
  {
    $id: 'CreateMessage',
    description: `A field that is null counts as not given, and fields that are not listed are ignored, unless the upstream
speaks the same protocol: it gets them as they came. \`temperature\`, \`top_p\` and \`top_k\` are read where
\`anthropic-version\` is 2023-06-01 or older. \`thread\` is refused.`,
  },
)

export const countTokens = Type.Pick(
  createMessage,
  [
    ...['model', 'messages', 'system', 'tools'],
    ...['tool_choice', 'thinking', 'output_config', 'output_format'],
  ],
  { $id: 'CountMessageTokens', description: 'Other fields are ignored.' },
)

export const requestHeaders = Type.Object({
  'anthropic-version': Type.Optional(
    Type.String({
      default: '2023-06-01',
      description: 'The dialect. One that is not known is read as the newest, `2026-10-21`.',
    }),
  ),
  'anthropic-beta': Type.Optional(
    Type.String({ description: 'For upstreams of the same protocol, and read by nobody here.' }),
  ),
  'x-claude-code-session-id': Type.Optional(
    Type.String({
      description: 'Names a session: its requests go to the same upstream.',
    }),
  ),
})
