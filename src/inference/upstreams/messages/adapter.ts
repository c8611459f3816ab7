import { postGeneration } from '#inference/http-generation.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { callIdsOf } from '#inference/tool-calls.ts'
import { createToolNames, type ToolNames } from '#inference/tool-names.ts'
import type { Adapter, AdapterContext } from '#inference/upstream.ts'
import { countTokens } from './count.ts'
import { createMessagesDecoder } from './decode.ts'
import { encodeMessagesRequest } from './encode.ts'
import { headersFor, pathOf } from './endpoint.ts'
import { listModels } from './models.ts'
import { encodeOrigin } from './origin.ts'
import { relayOfAnswer } from './relayed-error.ts'

/** Upstreams that speak the Messages protocol themselves. */
export const messages: Adapter = { generate, listModels, countTokens }

function generate(request: GenerationRequest, context: AdapterContext) {
  const { upstream, model, limits } = context
  return postGeneration(context, pathOf(upstream, '/messages'), () => {
    const { origin } = request
    const maker = `${upstream.name}/${model}`
    const target = { model, maker, quirks: upstream.quirks }
    const reading = {
      maker,
      takenCallIds: callIdsOf(request),
      toolArgumentCharsMax: limits.toolArgumentCharsMax,
    }
    if (origin !== undefined) {
      return {
        body: JSON.stringify(encodeOrigin(origin, target)),
        // Whether a call is an answer is between the caller and the upstream.
        decoder: createMessagesDecoder({ ...reading, toolNames: namesAsTheyAre, relays: true }),
        headers: headersFor(upstream, 'text/event-stream', origin.headers),
        relayError: relayOfAnswer,
      }
    }
    const toolNames = createToolNames(request)
    return {
      body: JSON.stringify(encodeMessagesRequest(request, { ...target, toolNames })),
      decoder: createMessagesDecoder({ ...reading, toolNames, relays: false }),
      headers: headersFor(upstream, 'text/event-stream'),
    }
  })
}

const namesAsTheyAre: Pick<ToolNames, 'head'> = { head: (name) => ({ name, form: 'function' }) }
