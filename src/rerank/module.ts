import type { Auth } from '#auth/auth.ts'
import type { Inference } from '#inference/inference.ts'
import type { Catalogue } from '#models/catalogue.ts'
import { type Foundation, module } from '#module.ts'
import { retrievalSettings } from '#settings/live-config.ts'
import { createRerankers, type Rerankers } from './reranker.ts'
import { rerankRoutes } from './routes.ts'

/** Rerank models, for retrieval and for clients. */
export const rerankModule = module({
  name: 'rerank',
  start: (services: { inference: Inference; catalogue: Catalogue }) => ({
    services: { rerankers: createRerankers(services) },
  }),
  routes: (services: Foundation & { auth: Auth; rerankers: Rerankers }) => [
    rerankRoutes({ ...services, settings: retrievalSettings(services.settings) }),
  ],
})
