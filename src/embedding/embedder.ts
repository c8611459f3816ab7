import type { ModelConfig } from '#config/schema.ts'
import { type Embeddings, mixedDimensions } from '#inference/embeddings.ts'
import type { Inference } from '#inference/inference.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'
import type { RequestContext, RequestPrincipal } from '#lib/request-context.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { createLocalHashEmbedder, localHashModel } from './local-hash.ts'

/** Computes vectors of texts: a model of mode `embed`, or the built-in `local-hash`. */
export type Embedder = {
  readonly model: string
  /** Texts that the upstream embeds in one request, as far as known; absent: any number. */
  readonly textsMax?: () => number
  /** The length of passages that suits the model, in tokens; absent: any. */
  readonly passageTokensMax?: number
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
  /** The name of the document that passages are of, which they often do not mention. */
  readonly title?: string
  readonly context: RequestContext
  /** Shorter vectors than the model's own, if it can produce them. */
  readonly dims?: number
}

export type Embedders = {
  /** By model name; throws `model_not_found`, or `model_mode_mismatch` for another mode. */
  find(model: string, principal: RequestPrincipal): Promise<Embedder>
}

export type EmbeddersDeps = {
  readonly inference: Pick<Inference, 'embed'>
  readonly modelResolver: Pick<ModelResolver, 'resolveMode' | 'mayUseOther' | 'isKnown'>
  readonly models: () => readonly Pick<ModelConfig, 'name' | 'queryPrefix' | 'passagePrefix'>[]
}

/** The embedding model that was installed last on this machine; `local-hash` while there is none. */
const localModel = 'local'

/** Small models find the subject of a short passage more reliably; `bench retrieval` measures it. */
const localPassageTokensMax = 256

/** Servers with lower limits refuse a batch or take too long; it is then halved. */
const batchTextsMax = 64
const batchCharsMax = 262_144
/** Full batches after which a halved size is doubled. */
const batchesPerGrowth = 32

export function createEmbedders({ inference, modelResolver, models }: EmbeddersDeps): Embedders {
  const localHash = createLocalHashEmbedder()
  const batchSizes = new Map<string, BatchSize>()
  return {
    async find(name, principal) {
      const isLocal = name === localHashModel && modelResolver.mayUseOther(principal, name)
      if (isLocal) return localHash
      const isAbsent = name === localModel && !modelResolver.isKnown(name)
      if (isAbsent) return localHash
      const { id, targets } = await modelResolver.resolveMode(principal, name, 'embed')
      const entry = models().find((model) => model.name === id)
      const prefixes = { query: entry?.queryPrefix ?? '', passage: entry?.passagePrefix ?? '' }
      const size = batchSizes.get(id) ?? createBatchSize()
      batchSizes.set(id, size)
      return {
        model: id,
        textsMax: size.textsMax,
        ...(targets[0]?.upstream.kind === 'onnx'
          ? { passageTokensMax: localPassageTokensMax }
          : {}),
        async embed(texts, { purpose, title, context, dims }) {
          // A query is embedded for a search, which limits do not refuse.
          const call = { context, targets, continues: purpose === 'query' }
          const prefixed = texts.map((text) => prefixes[purpose] + text)
          const parts: Embeddings[] = []
          let rest: readonly string[] = prefixed
          while (rest.length > 0) {
            const batch = firstBatch(rest, size.textsMax())
            try {
              const named = title === undefined ? {} : { title }
              const options = dims === undefined ? named : { ...named, dims }
              parts.push(await inference.embed(call, id, { texts: batch, purpose, ...options }))
            } catch (error) {
              if (batch.length === 1 || !mayBeTooLarge(error)) throw error
              size.halve(batch.length)
              continue
            }
            size.confirm(batch.length)
            rest = rest.slice(batch.length)
          }
          return join(parts)
        },
      }
    },
  }
}

type BatchSize = ReturnType<typeof createBatchSize>

/** Remembers what an upstream accepts, so that each call does not wait for a timeout again. */
function createBatchSize() {
  let textsMax = batchTextsMax
  let confirmed = 0
  return {
    textsMax: () => textsMax,
    halve(count: number) {
      textsMax = Math.ceil(count / 2)
      confirmed = 0
    },
    /** Doubles the size after several full batches. */
    confirm(count: number) {
      if (count < textsMax || textsMax === batchTextsMax) return
      confirmed += 1
      if (confirmed < batchesPerGrowth) return
      textsMax = Math.min(textsMax * 2, batchTextsMax)
      confirmed = 0
    },
  }
}

function firstBatch(texts: readonly string[], countMax: number): readonly string[] {
  let chars = 0
  const end = texts.findIndex((text, index) => {
    chars += text.length
    return index > 0 && (index >= countMax || chars > batchCharsMax)
  })
  return end === -1 ? texts : texts.slice(0, end)
}

/** Servers refuse a batch that is too large with various errors, or do not complete it in time. */
const batchErrors: ReadonlySet<ErrorKind> = new Set([
  'invalid_request',
  'request_too_large',
  'context_length_exceeded',
  'upstream_first_event_timeout',
  'upstream_gap_timeout',
  'upstream_total_timeout',
])

function mayBeTooLarge(error: unknown): boolean {
  return error instanceof AppError && batchErrors.has(error.kind)
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
