import type { GenerationRequest } from '#inference/request.ts'
import { createToolNames } from '#inference/tool-names.ts'
import type { AdapterContext } from '#inference/upstream.ts'
import { postToCounter, readCount } from '#inference/upstream-http.ts'
import { encodeMessagesRequest } from './encode.ts'
import { headersFor, pathOf } from './endpoint.ts'
import { encodeOrigin } from './origin.ts'

/** The fields of a message request that its counter does not take. */
const uncountedFields = [
  ...['max_tokens', 'stream', 'temperature', 'top_p', 'top_k', 'stop_sequences', 'metadata'],
  ...['service_tier', 'container', 'inference_geo', 'diagnostics'],
]

/** Asks POST /messages/count_tokens, with the body nearly as it came where its caller speaks this. */
export async function countTokens(
  request: GenerationRequest,
  context: AdapterContext,
): Promise<number | null> {
  const { upstream, model } = context
  const { origin } = request
  const { quirks } = upstream
  const maker = `${upstream.name}/${model}`
  const encoded =
    origin === undefined
      ? encodeMessagesRequest(request, {
          model,
          maker,
          quirks,
          toolNames: createToolNames(request),
        })
      : encodeOrigin(origin, { model, maker, quirks })
  const body = Object.fromEntries(
    Object.entries(encoded).filter(([name]) => !uncountedFields.includes(name)),
  )
  const answer = await postToCounter(context, {
    url: upstream.baseUrl + pathOf(upstream, '/messages/count_tokens'),
    body,
    headers: headersFor(upstream, 'application/json', origin?.headers),
  })
  return answer === null ? null : readCount(answer['input_tokens'])
}
