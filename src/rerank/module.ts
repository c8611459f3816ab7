import type { Inference } from '#inference/inference.ts'
import type { Limits } from '#limits/admission.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import { rerankEndpoints } from './endpoints.ts'
import { createRerankers, type Rerankers } from './reranker.ts'

/** Rerank models, for retrieval and for clients. */
export const rerankModule = module({
  name: 'rerank',
  start: (services: { inference: Inference; modelResolver: ModelResolver }) => ({
    services: { rerankers: createRerankers(services) },
  }),
  endpoints: (services: Foundation & { rerankers: Rerankers; limits: Limits }) =>
    rerankEndpoints({
      ...services,
      settings() {
        const { reranker_model: rerankModel, rerank_top_n: rerankTopN } =
          services.settings.current()
        return { rerankModel, rerankTopN }
      },
    }),
})
