import type { Auth } from '#auth/auth.ts'
import type { Transport } from '#inference/transport.ts'
import type { Catalogue } from '#models/catalogue.ts'
import { type Foundation, module } from '#module.ts'
import { retrievalSettings } from '#settings/live-config.ts'
import type { Rerankers } from './reranker.ts'
import { createRerankers } from './rerankers.ts'
import { rerankRoutes } from './routes.ts'

/** Rerank models, for retrieval and for callers. */
export const rerankModule = module({
  name: 'rerank',
  start({
    config,
    transport,
    catalogue,
  }: Foundation & { transport: Transport; catalogue: Catalogue }) {
    const { retry, deadlines } = config
    const answerMs = deadlines.firstEventMs
    return { services: { rerankers: createRerankers({ transport, catalogue, retry, answerMs }) } }
  },
  routes: (services: Foundation & { auth: Auth; rerankers: Rerankers }) => [
    rerankRoutes({ ...services, settings: retrievalSettings(services.settings) }),
  ],
})
