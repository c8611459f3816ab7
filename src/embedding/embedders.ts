import type { ModelConfig } from '#config/schema.ts'
import type { AskDeps } from '#inference/ask-upstream.ts'
import type { Catalogue } from '#models/catalogue.ts'
import { modeMismatch } from '#models/mode.ts'
import type { Embedders } from './embedder.ts'
import { createLocalHashEmbedder, localHashModel } from './local-hash.ts'
import { createUpstreamEmbedder } from './upstream-embedder.ts'

export type EmbeddersDeps = AskDeps & {
  readonly catalogue: Pick<Catalogue, 'resolve'>
  readonly models: readonly Pick<ModelConfig, 'name' | 'queryPrefix' | 'passagePrefix'>[]
}

export function createEmbedders({ catalogue, models, ...ask }: EmbeddersDeps): Embedders {
  const localHash = createLocalHashEmbedder()
  return {
    async find(name) {
      if (name === localHashModel) return localHash
      const { id, mode, targets } = await catalogue.resolve(name)
      if (mode !== 'embed') throw modeMismatch(name, { mode, wanted: 'embed' })
      const entry = models.find((model) => model.name === id)
      const prefixes = { query: entry?.queryPrefix ?? '', passage: entry?.passagePrefix ?? '' }
      return createUpstreamEmbedder(ask, { model: id, targets, prefixes })
    },
  }
}
