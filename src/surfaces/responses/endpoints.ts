import { type Endpoint, type Errors, endpoint, eventStream, json, jsonBody } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { streamEvents } from '#http/event-stream.ts'
import { setRateLimitHeaders } from '#http/rate-limit-headers.ts'
import type { Inference } from '#inference/inference.ts'
import type { TokenCounter } from '#inference/token-count/counter.ts'
import { newId } from '#lib/id.ts'
import { asRecord } from '#lib/json.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Limits } from '#limits/admission.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'
import { conversationFull, upstreamErrors } from '#surfaces/generation-errors.ts'
import {
  tokenCountDescription,
  tokenCountHeader,
  warningHeader,
} from '#surfaces/response-headers.ts'
import { compactContext } from './compaction.ts'
import { doneFrame } from './frames.ts'
import { notStoredWarning, renderUsage } from './render.ts'
import { eventsDescription, streamEvent } from './schema/events.ts'
import {
  exampleEncryptedContent,
  exampleIds,
  exampleInputItem,
  exampleRequest,
  exampleResponse,
  exampleStream,
  exampleUsage,
} from './schema/examples.ts'
import { compactRequest, createResponse } from './schema/request.ts'
import { compactedResponse, inputTokens, responseObject } from './schema/response-object.ts'
import type { ResponseService } from './service.ts'
import { toInputMessage } from './stored-item.ts'

type ResponseEndpointsDeps = {
  service: ResponseService
  inference: Pick<Inference, 'generate'>
  tokenCounter: Pick<TokenCounter, 'count'>
  sealer: Sealer
  limits: Pick<Limits, 'rateLimits'>
  config: Pick<Config, 'stream' | 'tokens'>
  now: () => Date
}

/** Creating responses, and what needs the same request: counting and compacting its input. */
export function responseEndpoints(deps: ResponseEndpointsDeps): Endpoint[] {
  const { service, tokenCounter, config, limits } = deps
  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/responses',
      summary: 'Create a response',
      description: `Calls a model or an agent and returns its response, complete or streamed (\`stream\`).

The gateway runs tools of the types \`mcp\` and \`file_search\` itself and returns their results to the
model. Calls of functions and custom tools end the response; send their outputs in the next request.
Unless \`store\` is false, the response is stored and continues when the client disconnects. By default the
input is limited to 10,485,760 characters and 10,000 items, and a request to 1,024 tools.

${eventsDescription}`,
      body: jsonBody(createResponse, { example: exampleRequest, read: unparsed }),
      responses: {
        200: {
          description: 'The response. A background response is returned in its queued state.',
          content: {
            ...json(responseObject, exampleResponse),
            ...eventStream(streamEvent, exampleStream()),
          },
          headers: { [warningHeader]: warningDescription },
        },
      },
      errors: generationErrors,
      async handle({ body, context, set }) {
        const response = await service.create(body, context)
        const result = response.streams
          ? await streamEvents(response.source(), {
              ...config.stream,
              closing: doneFrame,
              context,
            })
          : await response.result()
        const rateLimits = limits.rateLimits(context.principal, response.modelId)
        setRateLimitHeaders(set.headers, rateLimits, 'responses')
        const isUnstored = 'store' in result && result.store === false
        if (isUnstored && asRecord(body)['store'] !== false) {
          set.headers[warningHeader] = notStoredWarning.code
        }
        return result
      },
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/responses/input_tokens',
      summary: 'Count the input tokens of a response',
      description:
        'Counts the tokens that the model would get, including tools and history. The model is not called.',
      body: jsonBody(createResponse, { example: exampleRequest, read: unparsed }),
      responses: {
        200: {
          description: 'The token count.',
          content: json(inputTokens, { object: 'response.input_tokens', input_tokens: 22 }),
          headers: { [tokenCountHeader]: tokenCountDescription },
        },
      },
      errors: requestErrors,
      async handle({ body, context, set }) {
        const { request, targets, modelId, agentId } = await service.resolve(body, context)
        const { tokens, tier } = await tokenCounter.count(request, targets, {
          limitMs: config.tokens.patienceMs,
          context,
          modelId,
          agentId,
          surface: 'responses',
        })
        set.headers[tokenCountHeader] = tier
        return { object: 'response.input_tokens', input_tokens: tokens }
      },
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/responses/compact',
      summary: 'Compact a conversation',
      description: `The model summarizes its context. \`output\` replaces the context: send it as the input of the next request.
Nothing is stored.`,
      body: jsonBody(compactRequest, { example: exampleCompactRequest, read: unparsed }),
      responses: {
        200: {
          description: 'The compacted context.',
          content: json(compactedResponse, exampleCompactedResponse),
        },
      },
      errors: generationErrors,
      async handle({ body, context }) {
        const resolved = await service.resolve(compactFields(body), context)
        const { compaction } = sealsOf(deps.sealer, context.principal.userId)
        const { questions, sealed, usage } = await compactContext(
          { summarise: deps.inference.generate, seal: compaction },
          {
            request: resolved.request,
            targets: resolved.targets,
            modelId: resolved.modelId,
            agentId: resolved.agentId,
            surface: 'responses',
            context,
          },
        )
        return {
          id: newId('resp_'),
          object: 'response.compaction',
          created_at: unixSeconds(deps.now()),
          output: [
            ...questions.map(toInputMessage),
            { id: newId('cmp_'), type: 'compaction', encrypted_content: sealed },
          ],
          usage: renderUsage(usage),
        }
      },
    }),
  ]
}

const warningDescription =
  '`response_not_stored`: the response could not be stored, so it cannot be retrieved or continued later.'

const common = { permission: 'can_access_api', tag: 'Responses' } as const

/** The body is parsed with the history that it continues. */
function unparsed(body: unknown): unknown {
  return body
}

/** Other fields are ignored, and nothing is stored. */
function compactFields(body: unknown): unknown {
  if (body !== asRecord(body)) return body
  const fields = Object.entries(asRecord(body)).filter(
    ([name]) => name in compactRequest.properties,
  )
  return { ...Object.fromEntries(fields), store: false }
}

/** Errors before the model is called. */
const requestErrors: Errors = {
  invalid_request: [
    'temperature must be a number from 0 to 2.',
    {
      code: 'previous_response_not_found',
      message: `Previous response with id "${exampleIds.response}" not found.`,
    },
    {
      code: 'previous_responses_too_many',
      message:
        'A chain may hold at most 1000 responses; start a new one with their items as input.',
    },
    conversationFull,
  ],
  malformed_json: 'The request body is empty; send a JSON object.',
  user_message_missing:
    'Send the conversation as input (a string or an array of items); messages is not supported.',
  invalid_encrypted_content:
    'The encrypted content cannot be decrypted: it was altered, belongs to another user or use, or its key is no longer configured.',
  model_not_found: 'The model "llama-4" does not exist.',
  not_found: `Conversation with id "${exampleIds.conversation}" not found.`,
  conflict: {
    code: 'previous_response_not_finished',
    message: `The response "${exampleIds.response}" is not finished; wait for it to end, or cancel it.`,
  },
  request_too_large: 'The text of the input exceeds the limit of 10485760 characters.',
  unsupported_encoding:
    'Send the request body as gzip, br, zstd or deflate, or without compression.',
}

const generationErrors: Errors = {
  ...requestErrors,
  tool_not_supported:
    'tools[0]: the tool "web_search" is not supported with the model "demo"; these upstreams have it: "openai".',
  context_length_exceeded: "This model's maximum context length is 131072 tokens.",
  ...upstreamErrors,
  rate_limit_exceeded: [
    'The upstream returned status 429.',
    'This key has reached the limit of 100 unfinished background responses.',
  ],
}

const exampleCompactRequest = {
  model: exampleRequest.model,
  input: [
    { role: 'user', content: 'What is a sluice?' },
    { role: 'assistant', content: 'A gate that lets water through.' },
  ],
}

const exampleCompactedResponse = {
  id: exampleIds.response,
  object: 'response.compaction',
  created_at: 1_795_253_400,
  output: [
    exampleInputItem,
    {
      id: 'cmp_3w6bzphnjs2m7q4k9x1c8v5r0t',
      type: 'compaction',
      encrypted_content: exampleEncryptedContent,
    },
  ],
  usage: exampleUsage,
}
