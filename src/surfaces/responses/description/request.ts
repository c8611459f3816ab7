import { Type } from '@sinclair/typebox'
import { describeObject } from '#api/described.ts'
import {
  contextManagementEntry,
  createBody,
  jsonSchemaFormat,
  reasoningOptions,
  textOptions,
} from '#surfaces/responses/schema.ts'
import { inputItem } from './input-items.ts'
import { tool, toolChoice } from './tools.ts'

/** The body of a request for a response, as the parser reads it piece by piece. */

const named = (type: string) => ({ type: Type.Literal(type) })

const answerFormat = Type.Union(
  [
    Type.Object(named('text'), { additionalProperties: true }),
    Type.Object(named('json_object'), { additionalProperties: true }),
    describeObject(
      jsonSchemaFormat,
      {
        name: 'Of the form.',
        description: 'What the model reads about it.',
        schema: 'A JSON Schema.',
        strict: 'Passed on; the answer is checked either way.',
      },
      { own: named('json_schema') },
    ),
  ],
  {
    description:
      'JSON is checked here: an answer of another form ends as `incomplete`, for the reason `invalid_output`.',
  },
)

export const metadata = Type.Record(
  Type.String({ maxLength: 64 }),
  Type.String({ maxLength: 512 }),
  {
    maxProperties: 16,
    description:
      'Up to 16 texts of your own, kept with the object: keys of 64, values of 512 characters.',
  },
)

const input = Type.Union([Type.String(), Type.Array(inputItem)], {
  description:
    'A text, or items. May be left out where `previous_response_id` or `conversation` gives something to go on from.',
})

const conversationName = Type.Union(
  [Type.String(), Type.Object({ id: Type.String() }, { additionalProperties: true })],
  {
    description:
      'The conversation that this goes on from, and that input and output are added to. Not with `previous_response_id`.',
  },
)

const fields = {
  model: 'A name of the list of models: a model of mode `generate`, or an agent.',
  input,
  instructions:
    'A system message in front of the context. They are not taken over by what follows.',
  stream: 'Whether the answer is a stream of events.',
  tools: Type.Array(tool, { description: 'What the model may call.' }),
  tool_choice: toolChoice,
  parallel_tool_calls: 'Whether the model may make several calls at once. Absent: true.',
  max_tool_calls: 'The most calls of tools that the gateway runs itself.',
  text: describeObject(
    textOptions,
    { format: answerFormat, verbosity: 'How long the answer is to be.' },
    { description: 'The form of the answer.' },
  ),
  reasoning: describeObject(
    reasoningOptions,
    {
      effort: 'How hard a model that reasons thinks.',
      summary: 'How much it tells of its thoughts.',
      generate_summary: 'The older name of `summary`.',
    },
    { description: 'For models that reason.' },
  ),
  include: Type.Array(Type.String(), {
    description: `What answers hold beside the rest: \`reasoning.encrypted_content\` (thoughts sealed instead of in the
open), \`message.output_text.logprobs\`, \`file_search_call.results\`. Other words are ignored.`,
  }),
  store: 'Whether the response can be read, gone on from and cancelled later. Absent: true.',
  previous_response_id:
    'A stored response that is over; its input and output, and those of all before it, are the context.',
  conversation: conversationName,
  background:
    'Whether the response is queued and runs without its connection; needs `store`. Not over a WebSocket.',
  generate:
    'Over a WebSocket only: false leaves the input with the connection, and ends without asking the model.',
  context_management: Type.Array(
    describeObject(contextManagementEntry, {
      type: '`compaction`; entries of other types are ignored.',
      compact_threshold:
        'Tokens of context from which on it is compacted; absent: when 80 % of the window of the model are full.',
    }),
    { description: 'What is done with a long context before the model gets it.' },
  ),
  max_output_tokens: 'Where the answer is cut off, its reasoning included.',
  temperature: 'How freely words are chosen.',
  top_p: 'Of the likely words, those that make up so much of the probability.',
  presence_penalty: 'Against what was said already.',
  frequency_penalty: 'Against what was said often.',
  top_logprobs: 'How many other words are told for each one, with their probabilities.',
  truncation: 'Repeated in the answer and nothing else: a context that is too long is refused.',
  metadata,
  service_tier: 'Passed to upstreams that know it.',
  prompt_cache_key:
    'Names a session: its requests go to the same upstream, which may have computed their beginning before.',
  safety_identifier: 'Who asks, in your own words; passed on.',
  user: 'The older name of `safety_identifier`.',
}

export const createResponse = describeObject(createBody, fields, {
  $id: 'CreateResponse',
  description:
    'A field that is null counts as not given, and fields that are not listed are ignored.',
})

/** What is read of a body whose context is compacted. */
export const compactBody = Type.Pick(
  createResponse,
  ['model', 'input', 'instructions', 'previous_response_id', 'service_tier'],
  { $id: 'CompactRequest', description: 'Fields that are not listed are ignored.' },
)
