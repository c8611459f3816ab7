import type { Errors } from '#api/endpoint.ts'
import { eventStream, json, operation } from '#docs/operation.ts'
import { tokenCountHeader, whoCounted } from '#surfaces/token-count-header.ts'
import { aboutEvents, streamEvent } from './events.ts'
import { compactBody, createResponse } from './request.ts'
import { compactedResponse, inputTokens, responseObject } from './response-object.ts'
import {
  sampleIds,
  sampleRequest,
  sampleResponse,
  sampleSeal,
  sampleStream,
  sampleUsage,
} from './samples.ts'

const tag = 'Responses'

const longContext = [
  { role: 'user', content: 'What is a sluice?' },
  { role: 'assistant', content: 'A gate that lets water through.' },
]

/** What may be wrong with a request before its model is asked. */
const unreadable: Errors = {
  invalid_request: [
    'temperature must be a number from 0 to 2.',
    {
      code: 'previous_response_not_found',
      message: `Previous response with id "${sampleIds.response}" not found.`,
    },
    {
      code: 'previous_responses_too_many',
      message:
        'No more than 1000 responses may follow one another; begin anew with their items as input.',
    },
    {
      code: 'conversation_full',
      message:
        'A conversation may hold 10000 items and 67108864 bytes; this one is full. Delete some of its items, or begin another one.',
    },
  ],
  malformed_json: 'The request body is empty; send a JSON object.',
  user_message_missing:
    'Send the conversation as input, a text or an array of items; messages is not read.',
  invalid_encrypted_content:
    'The encrypted content cannot be opened: it was altered, it was not made for this caller and this use, or its key is gone.',
  model_not_found: 'The model "llama-4" does not exist.',
  not_found: [`Conversation with id "${sampleIds.conversation}" not found.`],
  conflict: {
    code: 'previous_response_not_finished',
    message: `The response "${sampleIds.response}" is not finished; wait for its end, or cancel it.`,
  },
  request_too_large:
    'The text of the input is longer than 10485760 characters, which is the limit.',
  unsupported_encoding:
    'Send the request body as gzip, br, zstd or deflate, or without compression.',
}

/** What may go wrong with an upstream before its first output. */
const upstreamFailures: Errors = {
  rate_limit_exceeded: [
    'The upstream answered 429.',
    'This key has 100 background responses that are not finished, which is the limit.',
  ],
  insufficient_quota: 'The upstream answered 402.',
  too_many_streams: 'The server has no room for another generation.',
  upstream_overloaded: 'The upstream answered 503.',
  upstream_error: 'The upstream failed to answer this request.',
  upstream_refused: 'The upstream refused the credential of the gateway.',
  upstream_unreachable: 'The upstream could not be reached.',
  upstream_invalid_answer:
    'The upstream answered with something other than an event stream or JSON.',
  upstream_truncated: 'The upstream ended its answer before it was complete.',
  upstream_connect_timeout: 'The upstream did not accept the connection in time.',
  upstream_first_event_timeout: 'The upstream gave no output within 300 s.',
  upstream_gap_timeout: 'The upstream was silent for 300 s in the middle of its answer.',
  upstream_total_timeout: 'The generation took longer than 600 s.',
}

const generationErrors: Errors = {
  ...unreadable,
  context_length_exceeded: "This model's maximum context length is 131072 tokens.",
  ...upstreamFailures,
}

export const responseOperations = {
  create: operation({
    tag,
    summary: 'Create a response',
    description: `Asks a model or an agent, and answers with a response: whole, or as a stream with \`stream\`.

Tools of the types \`mcp\` and \`file_search\` run here, and the model goes on with what they gave; calls of
functions and custom tools end the response, and you send back their outputs. Unless \`store\` is false the
response is kept, and goes on for a while without its reader. The input may have 10,485,760 characters and
10,000 items, a request 1,024 tools, unless the configuration says otherwise.

${aboutEvents}`,
    body: { content: json(createResponse, sampleRequest) },
    answers: {
      200: {
        description: 'The response; of one in the background, as it waits.',
        content: {
          ...json(responseObject, sampleResponse),
          ...eventStream(streamEvent, sampleStream()),
        },
      },
    },
    errors: generationErrors,
  }),
  countInput: operation({
    tag,
    summary: 'Count the input tokens of a response',
    description:
      'What a model would be given for this request, tools and history included. None is asked to answer.',
    body: { content: json(createResponse, sampleRequest) },
    answers: {
      200: {
        description: 'The count.',
        content: json(inputTokens, { object: 'response.input_tokens', input_tokens: 22 }),
        headers: {
          [tokenCountHeader]: whoCounted,
        },
      },
    },
    errors: unreadable,
  }),
  compact: operation({
    tag,
    summary: 'Compact a conversation',
    description: `The model sums up its context. What is answered as \`output\` is the input of the next request, and stands
for all of it. Nothing is stored.`,
    body: { content: json(compactBody, { model: sampleRequest.model, input: longContext }) },
    answers: {
      200: {
        description: 'The context in short.',
        content: json(compactedResponse, {
          id: sampleIds.response,
          object: 'response.compaction',
          created_at: 1_795_253_400,
          output: [
            {
              id: 'msg_5x1c8v2m7q4k9r0t3w6bzphnjs',
              type: 'message',
              status: 'completed',
              role: 'user',
              content: [{ type: 'input_text', text: 'What is a sluice?' }],
            },
            {
              id: 'cmp_3w6bzphnjs2m7q4k9x1c8v5r0t',
              type: 'compaction',
              encrypted_content: sampleSeal,
            },
          ],
          usage: sampleUsage,
        }),
      },
    },
    errors: generationErrors,
  }),
}
