import { embeddingsPath, type LineAnswers } from '#batches/batches.ts'
import type { Inference } from '#inference/inference.ts'
import type { Limits } from '#limits/admission.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import { createEmbedders, type Embedders } from './embedder.ts'
import { embeddingEndpoints, embeddingLines } from './endpoints.ts'
import { localHashModel } from './local-hash.ts'

type EndpointNeeds = Foundation & {
  embedders: Embedders
  limits: Limits
  lineAnswers: LineAnswers
}

/** Embedding models, for retrieval and for clients. */
export const embeddingModule = module({
  name: 'embedding',
  start: ({
    config,
    inference,
    modelResolver,
  }: Foundation & { inference: Inference; modelResolver: ModelResolver }) => ({
    services: {
      embedders: createEmbedders({ inference, modelResolver, models: () => config.model }),
      /** Without an upstream. */
      builtInEmbedders: [localHashModel],
    },
  }),
  started(services: EndpointNeeds) {
    services.lineAnswers.set(embeddingsPath, embeddingLines(services))
  },
  endpoints: (services: EndpointNeeds) => embeddingEndpoints(services),
})
