import { postGeneration } from '#inference/http-generation.ts'
import { fetchModelList } from '#inference/model-list.ts'
import { mayCall } from '#inference/tool-choice.ts'
import type { Adapter } from '#inference/upstream.ts'
import { newId } from '#lib/id.ts'
import { countTokens } from './count.ts'
import { createDecoder } from './decode.ts'
import { encodeRequest } from './encode.ts'

/** Upstreams that speak the Responses format themselves. */
export const responses: Adapter = {
  generate: (request, context) =>
    postGeneration(context, '/responses', () => {
      const { upstream, model, limits } = context
      const maker = `${upstream.name}/${model}`
      const body = JSON.stringify(encodeRequest(request, { model, maker, quirks: upstream.quirks }))
      const decoder = createDecoder({
        logprobs: request.sampling.topLogprobs !== null,
        toolArgumentCharsMax: limits.toolArgumentCharsMax,
        maker,
        mayCall: (tool) => mayCall(request.toolChoice, tool),
        mintCallId: () => newId('call_'),
      })
      return { body, decoder }
    }),
  listModels: fetchModelList,
  countTokens,
}
