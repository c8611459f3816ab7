import { postEmbeddings } from '#inference/embeddings.ts'
import { HttpGeneration } from '#inference/http-generation.ts'
import { fetchModelList } from '#inference/model-list.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { postRerank } from '#inference/rerank.ts'
import { callIdsOf } from '#inference/tool-calls.ts'
import { createToolNames } from '#inference/tools.ts'
import type { Adapter, AdapterContext } from '#inference/upstream.ts'
import { countTokens } from './count.ts'
import { ChatDecoder } from './decode.ts'
import { encodeChatRequest } from './encode.ts'

/** Servers that speak chat completions: vLLM, llama.cpp, Ollama, hosted APIs. */
export const chatCompletions: Adapter = {
  generate,
  listModels: fetchModelList,
  countTokens,
  embed: postEmbeddings,
  rerank: postRerank,
}

function generate(request: GenerationRequest, context: AdapterContext) {
  return new HttpGeneration(context, '/chat/completions', () => {
    const { quirks } = context.upstream
    const toolNames = createToolNames(request)
    const body = encodeChatRequest(request, { model: context.model, quirks, toolNames })
    const decoder = new ChatDecoder({
      toolNames,
      thinkTags: quirks.thinkTags,
      logprobs: request.sampling.topLogprobs !== null,
      takenCallIds: callIdsOf(request),
      toolArgumentCharsMax: context.limits.toolArgumentCharsMax,
    })
    return { body: JSON.stringify(body), decoder }
  })
}
