import type { AskDeps } from '#inference/ask-upstream.ts'
import type { Catalogue } from '#models/catalogue.ts'
import { modeMismatch } from '#models/mode.ts'
import type { Rerankers } from './reranker.ts'
import { createUpstreamReranker } from './upstream-reranker.ts'

export function createRerankers({
  catalogue,
  ...ask
}: AskDeps & { readonly catalogue: Pick<Catalogue, 'resolve'> }): Rerankers {
  return {
    async find(name) {
      const { id, mode, targets } = await catalogue.resolve(name)
      if (mode !== 'rerank') throw modeMismatch(name, { mode, wanted: 'rerank' })
      return createUpstreamReranker(ask, { model: id, targets })
    },
  }
}
