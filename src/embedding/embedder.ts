import type { ModelConfig } from '#config/schema.ts'
import { type Embeddings, mixedDimensions } from '#inference/embeddings.ts'
import type { Inference, ModelCall } from '#inference/inference.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Catalogue } from '#models/catalogue.ts'
import { createLocalHashEmbedder, localHashModel } from './local-hash.ts'

/** Computes vectors of texts: a model of mode `embed`, or the built-in `local-hash`. */
export type Embedder = {
  readonly model: string
  /**
   * One vector per text, in order, all of the same length, finite and not zero. Splits the texts into
   * batches that the upstream accepts. Throws an `AppError`; an invalid response is
   * `upstream_invalid_answer`.
   */
  embed(texts: readonly string[], options: EmbedOptions): Promise<Embeddings>
}

type EmbedOptions = {
  /** Some models embed queries and passages differently. */
  readonly purpose: 'query' | 'passage'
  readonly context: RequestContext
  /** Shorter vectors than the model's own, if it can produce them. */
  readonly dims?: number
}

export type Embedders = {
  /** By model name; throws `model_not_found`, or `model_mode_mismatch` for another mode. */
  find(model: string): Promise<Embedder>
}

export type EmbeddersDeps = {
  readonly inference: Pick<Inference, 'embed'>
  readonly catalogue: Pick<Catalogue, 'resolve'>
  readonly models: readonly Pick<ModelConfig, 'name' | 'queryPrefix' | 'passagePrefix'>[]
}

/** Servers with lower limits refuse a batch, which is then halved. */
const batchTextsMax = 64
const batchCharsMax = 262_144

export function createEmbedders({ inference, catalogue, models }: EmbeddersDeps): Embedders {
  const localHash = createLocalHashEmbedder()
  return {
    async find(name) {
      if (name === localHashModel) return localHash
      const { id, targets } = await catalogue.resolve(name, { mode: 'embed' })
      const entry = models.find((model) => model.name === id)
      const prefixes = { query: entry?.queryPrefix ?? '', passage: entry?.passagePrefix ?? '' }
      return {
        model: id,
        async embed(texts, { purpose, context, dims }) {
          const call = { context, targets }
          const prefixed = texts.map((text) => prefixes[purpose] + text)
          const parts: Embeddings[] = []
          for (const batch of batchesOf(prefixed)) {
            parts.push(await embedBatch({ inference, call, model: id, dims }, batch))
          }
          return join(parts)
        },
      }
    },
  }
}

type BatchCall = Pick<EmbeddersDeps, 'inference'> & {
  readonly call: ModelCall
  readonly model: string
  readonly dims: number | undefined
}

async function embedBatch(batchCall: BatchCall, texts: readonly string[]): Promise<Embeddings> {
  const { inference, call, model, dims } = batchCall
  try {
    return await inference.embed(call, model, { texts, ...(dims === undefined ? {} : { dims }) })
  } catch (error) {
    if (texts.length === 1 || !mayBeTooLarge(error)) throw error
    const half = Math.ceil(texts.length / 2)
    return join([
      await embedBatch(batchCall, texts.slice(0, half)),
      await embedBatch(batchCall, texts.slice(half)),
    ])
  }
}

function* batchesOf(texts: readonly string[]): Generator<string[]> {
  let batch: string[] = []
  let chars = 0
  for (const text of texts) {
    const isFull = batch.length >= batchTextsMax || chars + text.length > batchCharsMax
    if (isFull && batch.length > 0) {
      yield batch
      batch = []
      chars = 0
    }
    batch.push(text)
    chars += text.length
  }
  if (batch.length > 0) yield batch
}

/** Servers refuse a batch that is too large with various errors. */
function mayBeTooLarge(error: unknown): boolean {
  return (
    error instanceof AppError &&
    ['invalid_request', 'request_too_large', 'context_length_exceeded'].includes(error.kind)
  )
}

function join(parts: readonly Embeddings[]): Embeddings {
  const dims = parts[0]?.dims ?? 0
  if (parts.some((part) => part.dims !== dims)) throw mixedDimensions()
  const tokens = parts.map((part) => part.inputTokens)
  return {
    vectors: parts.flatMap((part) => part.vectors),
    dims,
    inputTokens: tokens.includes(null)
      ? null
      : tokens.reduce<number>((sum, count) => sum + (count ?? 0), 0),
  }
}
