import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'
import { literals } from './content.ts'
import { keptItem } from './input-items.ts'
import { outputItem } from './output-items.ts'

/** The Response object, and what else the routes of responses answer. */

const usage = Type.Object(
  {
    input_tokens: Type.Integer(),
    input_tokens_details: Type.Object({
      cached_tokens: Type.Integer({ description: 'Of the input: read from the cache.' }),
      cache_write_tokens: Type.Integer({ description: 'Of the input: written to it.' }),
    }),
    output_tokens: Type.Integer(),
    output_tokens_details: Type.Object({
      reasoning_tokens: Type.Integer({ description: 'Of the output.' }),
    }),
    total_tokens: Type.Integer(),
  },
  { $id: 'ResponseUsage' },
)

const outcome = {
  error: nullable(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()]),
    }),
    'Why it failed.',
  ),
  incomplete_details: nullable(
    Type.Object({
      reason: literals(
        ['max_output_tokens', 'content_filter', 'invalid_output'],
        '`invalid_output`: the answer does not have the form that was demanded.',
      ),
    }),
    'Why it is `incomplete`.',
  ),
  usage: nullable(usage, 'Null until it is over, and where nobody counted.'),
}

/** Whose further fields are as they were sent. */
const open = { additionalProperties: true }

/** What repeats the request, with the defaults that held. */
const echo = {
  model: Type.String({ description: 'The name that was sent.' }),
  instructions: Type.Union([Type.String(), Type.Null()]),
  previous_response_id: Type.Union([Type.String(), Type.Null()]),
  conversation: Type.Optional(Type.Object({ id: Type.String() })),
  tools: Type.Array(Type.Object({ type: Type.String() }, open), {
    description: 'As they were sent, without credentials of servers.',
  }),
  tool_choice: Type.Union([Type.String(), Type.Object({})]),
  parallel_tool_calls: Type.Boolean(),
  text: Type.Object({
    format: Type.Object({ type: Type.String() }, open),
    verbosity: Type.Optional(Type.String()),
  }),
  reasoning: Type.Object({
    effort: Type.Union([Type.String(), Type.Null()]),
    summary: Type.Union([Type.String(), Type.Null()]),
  }),
  temperature: Type.Number(),
  top_p: Type.Number(),
  presence_penalty: Type.Number(),
  frequency_penalty: Type.Number(),
  top_logprobs: Type.Integer(),
  truncation: literals(['auto', 'disabled'], 'As it was sent.'),
  max_output_tokens: Type.Union([Type.Integer(), Type.Null()]),
  max_tool_calls: Type.Union([Type.Integer(), Type.Null()]),
  store: Type.Boolean({ description: 'False also where the database was away for too long.' }),
  background: Type.Boolean(),
  service_tier: Type.String(),
  metadata: Type.Record(Type.String(), Type.String()),
  safety_identifier: Type.Union([Type.String(), Type.Null()]),
  prompt_cache_key: Type.Union([Type.String(), Type.Null()]),
}

export const responseObject = Type.Object(
  {
    id: Type.String({ description: '`resp_…`' }),
    object: Type.Literal('response'),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    completed_at: nullable(Type.Integer(), 'Unix seconds, where it was completed.'),
    status: literals(
      ['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'],
      'The last four are final.',
    ),
    output: Type.Array(outputItem, { description: 'In order; while it runs, as far as it is.' }),
    ...outcome,
    ...echo,
  },
  { $id: 'Response' },
)

export const compactedResponse = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('response.compaction'),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    output: Type.Array(keptItem, {
      description: 'Messages of the user that stay, and a `compaction` for everything else.',
    }),
    usage,
  },
  { $id: 'CompactedResponse' },
)

export const inputTokens = Type.Object(
  { object: Type.Literal('response.input_tokens'), input_tokens: Type.Integer() },
  { $id: 'ResponseInputTokens' },
)

export const conversationObject = Type.Object(
  {
    id: Type.String({ description: '`conv_…`' }),
    object: Type.Literal('conversation'),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    metadata: Type.Record(Type.String(), Type.String()),
  },
  { $id: 'Conversation' },
)
export type ConversationObject = Frozen<Static<typeof conversationObject>>
