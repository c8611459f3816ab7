import { postEmbeddings } from '#inference/embeddings.ts'
import { HttpGeneration } from '#inference/http-generation.ts'
import { fetchModelList } from '#inference/model-list.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { postRerank } from '#inference/rerank.ts'
import { mayCall } from '#inference/tools.ts'
import type { Adapter, AdapterContext } from '#inference/upstream.ts'
import { targetName } from '#inference/upstream-fields.ts'
import { postToCounter, readCount } from '#inference/upstream-http.ts'
import { newId } from '#lib/id.ts'
import { createDecoder } from './decode.ts'
import { encodeRequest } from './encode.ts'

/** Upstreams that speak the Responses format natively. */
export const responses: Adapter = {
  generate: (request, context) =>
    new HttpGeneration(context, '/responses', (streamed) => ({
      body: JSON.stringify({ ...encode(request, context), stream: streamed }),
      decoder: createDecoder({
        logprobs: request.sampling.topLogprobs !== null,
        toolArgumentCharsMax: context.limits.toolArgumentCharsMax,
        sealedBy: targetName(context),
        mayCall: (tool) => mayCall(request.toolChoice, tool),
        mintCallId: () => newId('call_'),
      }),
    })),
  listModels: fetchModelList,
  countTokens,
  embed: postEmbeddings,
  rerank: postRerank,
}

function encode(request: GenerationRequest, context: AdapterContext) {
  const { model, upstream } = context
  return encodeRequest(request, { model, targetName: targetName(context), quirks: upstream.quirks })
}

/** The fields of a request that POST /responses/input_tokens accepts. */
const countedFields = [
  'model',
  'instructions',
  'input',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'reasoning',
] as const

async function countTokens(
  request: GenerationRequest,
  context: AdapterContext,
): Promise<number | null> {
  const encoded = encode(request, context)
  const counted = await postToCounter(context, {
    url: `${context.upstream.baseUrl}/responses/input_tokens`,
    body: Object.fromEntries(countedFields.map((name) => [name, encoded[name]])),
  })
  return counted === null ? null : readCount(counted['input_tokens'])
}
