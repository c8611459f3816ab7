import { Type } from '@sinclair/typebox'
import type { Errors } from '#api/endpoint.ts'
import { deleted, listOf } from '#api/shapes.ts'
import { eventStream, json, operation } from '#docs/operation.ts'
import { aboutEvents, streamEvent } from './events.ts'
import { keptItem } from './input-items.ts'
import { responseObject } from './response-object.ts'
import { sampleIds, sampleResponse, sampleStream } from './samples.ts'

const tag = 'Responses'
const path = { id: 'The id of the response.' }

const include = Type.Optional(
  Type.Array(Type.String(), {
    description:
      'As in the body of a request: `reasoning.encrypted_content`, `file_search_call.results`. `include[]` is understood as well.',
  }),
)

const streamQuery = Type.Object({
  stream: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether its events are wanted, from the first.' }),
  ),
  starting_after: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'The `sequence_number` of the last event that was seen. Needs `stream=true`.',
    }),
  ),
  include,
})

/** Of each list of items. */
export const itemsQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Items of a page.' }),
  ),
  after: Type.Optional(Type.String({ description: 'The id of the last item of the page before.' })),
  order: Type.Optional(
    Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
      default: 'desc',
      description: '`desc`: the newest first.',
    }),
  ),
  include,
})

export const sampleKeptItem = {
  id: 'msg_5x1c8v2m7q4k9r0t3w6bzphnjs',
  type: 'message',
  status: 'completed',
  role: 'user',
  content: [{ type: 'input_text', text: 'What is a sluice?' }],
}

const absent: Errors = { not_found: `Response with id "${sampleIds.response}" not found.` }
const shown = (description: string, status = 'completed') => ({
  description,
  content: json(responseObject, { ...sampleResponse, status }),
})

export const storedOperations = {
  show: operation({
    tag,
    summary: 'Show or stream a stored response',
    description: `As it stands now, or its events: those that were, and what follows until the end. So a reader that lost
its connection goes on where it was. While a response is queued, comments (\`: waiting\`) show that the
connection lives. The events of a response are kept for a day after its end, unless the configuration says
otherwise. Logarithms of probabilities cannot be asked for later.

${aboutEvents}`,
    path,
    query: streamQuery,
    answers: {
      200: {
        description: 'The response.',
        content: {
          ...json(responseObject, sampleResponse),
          ...eventStream(streamEvent, sampleStream(8)),
        },
      },
    },
    errors: {
      invalid_request: 'starting_after needs stream=true.',
      not_found: [
        `Response with id "${sampleIds.response}" not found.`,
        {
          code: 'stream_expired',
          message: 'The stream of this response has expired.',
        },
      ],
    },
  }),
  remove: operation({
    tag,
    summary: 'Delete a stored response',
    description: 'One that runs is ended. Those that follow it can be read, and not gone on from.',
    path,
    answers: {
      200: {
        description: 'It is gone.',
        content: json(deleted('response.deleted'), {
          id: sampleIds.response,
          object: 'response.deleted',
          deleted: true,
        }),
      },
    },
    errors: absent,
  }),
  cancel: operation({
    tag,
    summary: 'Cancel a response that runs',
    description: 'In the background or not; one that is over stays as it is.',
    path,
    answers: { 200: shown('The response as it ended.', 'cancelled') },
    errors: absent,
  }),
  inputItems: operation({
    tag,
    summary: 'List the input items of a stored response',
    description: 'What was sent with it, without the context that it goes on from.',
    path,
    query: itemsQuery,
    answers: {
      200: {
        description: 'A page of items.',
        content: json(listOf(keptItem), {
          object: 'list',
          data: [sampleKeptItem],
          first_id: sampleKeptItem.id,
          last_id: sampleKeptItem.id,
          has_more: false,
        }),
      },
    },
    errors: {
      ...absent,
      invalid_request: ['limit must be a whole number from 1 to 100.'],
    },
  }),
}
