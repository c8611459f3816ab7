import { postEmbeddings } from '#inference/embeddings.ts'
import { HttpGeneration, type PreparedRequest } from '#inference/http-generation.ts'
import { fetchModelList } from '#inference/model-list.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { postRerank } from '#inference/rerank.ts'
import { postSpeech } from '#inference/speak.ts'
import { callIdsOf } from '#inference/tool-calls.ts'
import { createToolNames } from '#inference/tools.ts'
import type { Adapter, AdapterContext } from '#inference/upstream.ts'
import { targetName } from '#inference/upstream-fields.ts'
import { countTokens } from './count.ts'
import { ChatDecoder } from './decode.ts'
import { encodeChatRequest } from './encode.ts'
import { learnRefusal, readRefusal, refusedFields, withoutFields } from './refusals.ts'

/** Servers that speak chat completions: vLLM, llama.cpp, Ollama, hosted APIs. */
export const chatCompletions: Adapter = {
  generate,
  listModels: fetchModelList,
  countTokens,
  embed: postEmbeddings,
  speak: postSpeech,
  rerank: postRerank,
}

function generate(request: GenerationRequest, context: AdapterContext) {
  return new HttpGeneration(context, '/chat/completions', (streamed) =>
    prepare(request, context, streamed),
  )
}

function prepare(
  request: GenerationRequest,
  context: AdapterContext,
  streamed: boolean,
): PreparedRequest {
  const { quirks } = context.upstream
  const name = targetName(context)
  const toolNames = createToolNames(request)
  const target = { model: context.model, targetName: name, quirks, toolNames }
  const body = encodeChatRequest(request, target)
  body['stream'] = streamed
  if (streamed && quirks.streamUsage) body['stream_options'] = { include_usage: true }
  const decoder = new ChatDecoder({
    toolNames,
    thinkTags: quirks.thinkTags,
    logprobs: request.sampling.topLogprobs !== null,
    takenCallIds: callIdsOf(request),
    toolArgumentCharsMax: context.limits.toolArgumentCharsMax,
    sealedBy: name,
  })
  return prepareWithout(refusedFields(name))

  function prepareWithout(refused: ReadonlySet<string>): PreparedRequest {
    const sent = withoutFields(body, refused)
    return {
      body: JSON.stringify(sent),
      decoder,
      accepted: () => {
        if (refused.size > refusedFields(name).size) learnRefusal(name, refused)
      },
      afterRefusal(error) {
        const named = readRefusal(error, sent)
        return named === null ? null : prepareWithout(new Set([...refused, ...named]))
      },
    }
  }
}
