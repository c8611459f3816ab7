import type { Auth } from '#auth/auth.ts'
import type { Transport } from '#inference/transport.ts'
import type { Catalogue } from '#models/catalogue.ts'
import { type Foundation, module } from '#module.ts'
import type { Embedders } from './embedder.ts'
import { createEmbedders } from './embedders.ts'
import { embeddingRoutes } from './routes.ts'

/** Embedding models, for retrieval and for callers. */
export const embeddingModule = module({
  name: 'embedding',
  start({
    config,
    transport,
    catalogue,
  }: Foundation & { transport: Transport; catalogue: Catalogue }) {
    const { retry, deadlines, model: models } = config
    const answerMs = deadlines.firstEventMs
    return {
      services: { embedders: createEmbedders({ transport, catalogue, retry, answerMs, models }) },
    }
  },
  routes: (services: Foundation & { auth: Auth; embedders: Embedders }) => [
    embeddingRoutes(services),
  ],
})
