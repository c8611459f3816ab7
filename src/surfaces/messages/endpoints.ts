import { Type } from '@sinclair/typebox'
import { type Endpoint, type Errors, endpoint, eventStream, json, jsonBody } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { streamEvents } from '#http/event-stream.ts'
import { setRateLimitHeaders } from '#http/rate-limit-headers.ts'
import type { Limits } from '#limits/admission.ts'
import { upstreamErrors } from '#surfaces/generation-errors.ts'
import {
  tokenCountDescription,
  tokenCountHeader,
  warningHeader,
} from '#surfaces/response-headers.ts'
import { omittedCode } from './render.ts'
import { eventsDescription, messageEvent } from './schema/events.ts'
import { exampleMessage, exampleRequest, exampleStream } from './schema/examples.ts'
import { messageObject, tokenCount } from './schema/message-object.ts'
import { countTokens, createMessage, requestHeaders } from './schema/request.ts'
import type { MessageService } from './service.ts'

export type MessageEndpointsDeps = {
  service: MessageService
  limits: Pick<Limits, 'rateLimits'>
  config: Pick<Config, 'stream'>
}

/** Clients append `/v1/messages` or `/messages` to a base URL that may end in `/v1`. */
const paths = ['/compat/v1/messages', '/compat/messages', '/compat/v1/v1/messages']

/** Creating messages and counting their tokens, and the probes that clients send first. */
export function messageEndpoints(deps: MessageEndpointsDeps): Endpoint[] {
  return [
    ...paths.flatMap((path) => [createEndpoint(path, deps), countEndpoint(path, deps)]),
    probeEndpoint(),
  ]
}

function createEndpoint(path: string, { service, config, limits }: MessageEndpointsDeps): Endpoint {
  return endpoint({
    method: 'POST',
    path,
    permission: 'can_access_api',
    tag: 'Messages',
    summary: 'Create a message',
    description: `Calls a model or an agent and returns its message, complete or streamed (\`stream\`). Base URLs with and
without \`/v1\` work. An upstream of the same protocol gets the body unchanged, and its response is
returned unchanged except for ids, model names and signatures; other upstreams get a translation.

The error message names the invalid field: \`messages.2.content.0.type\`.

${eventsDescription}`,
    headers: requestHeaders,
    body: jsonBody(createMessage, { example: exampleRequest, read: unparsed }),
    responses: {
      200: {
        description: 'The message.',
        content: {
          ...json(messageObject, exampleMessage),
          ...eventStream(messageEvent, exampleStream),
        },
        headers: {
          [warningHeader]:
            '`output_omitted`: the field `warning` names output that messages have no blocks for.',
        },
      },
    },
    errors: generationErrors,
    async handle({ body, context, request, set }) {
      const message = await service.create(body, { context, headers: request.headers })
      const result = message.streams
        ? await streamEvents(message.source(), {
            ...config.stream,
            closing: '',
            context,
          })
        : await message.result()
      const rateLimits = limits.rateLimits(context.principal, message.modelId)
      setRateLimitHeaders(set.headers, rateLimits, 'messages')
      if ('warning' in result) set.headers[warningHeader] = omittedCode
      return result
    },
  })
}

function countEndpoint(path: string, { service }: MessageEndpointsDeps): Endpoint {
  return endpoint({
    method: 'POST',
    path: `${path}/count_tokens`,
    permission: 'can_access_api',
    tag: 'Messages',
    summary: 'Count the input tokens of a message',
    description: 'Counts the tokens that the model would get. The model is not called.',
    headers: requestHeaders,
    body: jsonBody(countTokens, {
      example: { model: exampleRequest.model, messages: exampleRequest.messages },
      read: unparsed,
    }),
    responses: {
      200: {
        description: 'The token count.',
        content: json(tokenCount, { input_tokens: 14 }),
        headers: { [tokenCountHeader]: tokenCountDescription },
      },
    },
    errors: requestErrors,
    async handle({ body, context, request, set }) {
      const { tokens, tier } = await service.countTokens(body, {
        context,
        headers: request.headers,
      })
      set.headers[tokenCountHeader] = tier
      return { input_tokens: tokens }
    },
  })
}

/** Some clients check the base URL before their first request. */
function probeEndpoint(): Endpoint {
  return endpoint({
    method: 'GET',
    path: '/compat',
    permission: 'public',
    tag: 'Operations',
    summary: 'Check that the server is reachable',
    description: 'For clients that probe the base URL before their first request.',
    responses: {
      200: {
        description: 'The server is reachable.',
        content: json(Type.Object({ status: Type.Literal('ok') }), { status: 'ok' }),
      },
    },
    handle: () => ({ status: 'ok' }),
  })
}

/** The dialect of the headers decides how the body is parsed. */
function unparsed(body: unknown): unknown {
  return body
}

/** Errors before the model is called. */
const requestErrors: Errors = {
  invalid_request: [
    'messages.0.content: must be a string or an array of objects',
    {
      code: 'thread_unsupported_request',
      message: 'thread: is not supported; send all messages each time',
    },
  ],
  malformed_json: 'The request body is empty; send a JSON object.',
  model_not_found: 'model: llama-4',
  tool_not_supported:
    'tools.0: the tool "web_search_20250305" is not supported with the model "demo"; no configured upstream has it.',
  request_too_large: 'The text of the messages exceeds the limit of 10485760 characters.',
  unsupported_encoding:
    'Send the request body as gzip, br, zstd or deflate, or without compression.',
}

const generationErrors: Errors = {
  ...requestErrors,
  context_length_exceeded: 'prompt is too long: 140000 tokens > 131072 maximum',
  ...upstreamErrors,
  upstream_invalid_answer:
    'The model called the tool get_weather with arguments that are no JSON object.',
}
