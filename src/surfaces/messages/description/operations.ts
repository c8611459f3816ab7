import type { Errors } from '#api/endpoint.ts'
import { eventStream, json, operation } from '#docs/operation.ts'
import { tokenCountHeader, whoCounted } from '#surfaces/token-count-header.ts'
import { aboutEvents, messageEvent } from './events.ts'
import { messageObject, tokenCount } from './message-object.ts'
import { countTokens, createMessage, requestHeaders } from './request.ts'
import { sampleMessage, sampleRequest, sampleStream } from './samples.ts'

const tag = 'Messages'

/** What may be wrong with a request before its model is asked. */
const unreadable: Errors = {
  invalid_request: [
    'messages.0.content: must be a text or an array of content blocks',
    {
      code: 'thread_unsupported_request',
      message: 'thread: is not offered; send all messages each time',
    },
  ],
  malformed_json: 'The request body is empty; send a JSON object.',
  model_not_found: 'model: llama-4',
  request_too_large:
    'The text of the messages is longer than 10485760 characters, which is the limit.',
  unsupported_encoding:
    'Send the request body as gzip, br, zstd or deflate, or without compression.',
}

export const messageOperations = {
  create: operation({
    tag,
    summary: 'Create a message',
    description: `Asks a model or an agent, and answers with a message: whole, or as a stream with \`stream\`. Bases
that end in \`/v1\` and bases that do not both work. To an upstream of the same protocol the body goes as it
came, and its answer comes back as it is, but for ids, names and seals; for others it is translated.

A field that is not as it has to be is named in the message of the error: \`messages.2.content.0.type\`.

${aboutEvents}`,
    headers: requestHeaders,
    body: { content: json(createMessage, sampleRequest) },
    answers: {
      200: {
        description: 'The message.',
        content: {
          ...json(messageObject, sampleMessage),
          ...eventStream(messageEvent, sampleStream),
        },
      },
    },
    errors: {
      ...unreadable,
      context_length_exceeded: 'prompt is too long: 140000 tokens > 131072 maximum',
      rate_limit_exceeded: 'The upstream answered 429.',
      insufficient_quota: 'The upstream answered 402.',
      too_many_streams: 'The server has no room for another generation.',
      upstream_error: 'The upstream failed to answer this request.',
      upstream_refused: 'The upstream refused the credential of the gateway.',
      upstream_unreachable: 'The upstream could not be reached.',
      upstream_invalid_answer:
        'The model called the tool get_weather with arguments that are no JSON object.',
      upstream_truncated: 'The upstream ended its answer before it was complete.',
      upstream_overloaded: 'The upstream answered 503.',
      upstream_connect_timeout: 'The upstream did not accept the connection in time.',
      upstream_first_event_timeout: 'The upstream gave no output within 300 s.',
      upstream_gap_timeout: 'The upstream was silent for 300 s in the middle of its answer.',
      upstream_total_timeout: 'The generation took longer than 600 s.',
    },
  }),
  countTokens: operation({
    tag,
    summary: 'Count the input tokens of a message',
    description: 'What a model would be given for this request. None is asked to answer.',
    headers: requestHeaders,
    body: {
      content: json(countTokens, {
        model: sampleRequest.model,
        messages: sampleRequest.messages,
      }),
    },
    answers: {
      200: {
        description: 'The count.',
        content: json(tokenCount, { input_tokens: 14 }),
        headers: { [tokenCountHeader]: whoCounted },
      },
    },
    errors: unreadable,
  }),
}
