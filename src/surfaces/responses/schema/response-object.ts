import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '#api/request-schema.ts'
import { nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'
import type { StoredItem } from '#responses/response.ts'
import { storedItem } from './input-items.ts'
import { outputItem } from './output-items.ts'
import { responseEcho } from './request.ts'

/** The Response object, and the other objects that the endpoints of responses return. */

const usage = Type.Object(
  {
    input_tokens: Type.Integer(),
    input_tokens_details: Type.Object({
      cached_tokens: Type.Integer({ description: 'Input tokens read from the prompt cache.' }),
      cache_write_tokens: Type.Integer({ description: 'Input tokens written to it.' }),
    }),
    output_tokens: Type.Integer(),
    output_tokens_details: Type.Object({
      reasoning_tokens: Type.Integer({ description: 'Output tokens spent on reasoning.' }),
    }),
    total_tokens: Type.Integer(),
  },
  { $id: 'ResponseUsage' },
)
export type ResponseUsage = Frozen<Static<typeof usage>>

const createdAt = Type.Integer({ description: 'Unix seconds.' })

const outcome = {
  error: nullable(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()]),
    }),
    'Why the response failed.',
  ),
  incomplete_details: nullable(
    Type.Object({
      reason: oneOf(
        ['max_output_tokens', 'content_filter', 'invalid_output', 'steered'],
        '`invalid_output`: the output does not conform to the requested format. `steered`: interrupted by `response.steer`.',
      ),
    }),
    'Why the response is `incomplete`.',
  ),
  usage: nullable(usage, 'Null until the response ends, and if the upstream did not report it.'),
}

/** From upstreams of this format, as they are. */
const reported = {
  tool_usage: Type.Optional(Type.Object({}, { description: 'What tools of the upstream used.' })),
  input_transformations: Type.Optional(
    Type.Array(Type.Object({}), { description: 'Reasoning that the upstream withheld.' }),
  ),
  prompt_cache_diagnostics: Type.Optional(
    Type.Object({}, { description: 'Why the prompt cache was not used, if the request asked.' }),
  ),
}

export const responseObject = Type.Object(
  {
    id: Type.String({ description: '`resp_…`' }),
    object: Type.Literal('response'),
    created_at: createdAt,
    completed_at: nullable(Type.Integer(), 'Unix seconds, if the response completed.'),
    status: oneOf(
      ['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'],
      'The last four are final.',
    ),
    output: Type.Array(Type.Unsafe<StoredItem>(outputItem), {
      description: 'The output items so far, in order.',
    }),
    ...outcome,
    ...reported,
    ...responseEcho.properties,
  },
  { $id: 'ResponseObject' },
)
export type WireResponse = Frozen<Static<typeof responseObject>>

export const compactedResponse = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('response.compaction'),
    created_at: createdAt,
    output: Type.Array(storedItem, {
      description: 'The user messages that were kept, and a `compaction` for everything else.',
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
    created_at: createdAt,
    metadata: Type.Record(Type.String(), Type.String()),
  },
  { $id: 'Conversation' },
)
export type ConversationObject = Frozen<Static<typeof conversationObject>>
