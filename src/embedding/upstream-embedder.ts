import { type AskDeps, askUpstream, type Question } from '#inference/ask-upstream.ts'
import type { Target } from '#inference/generate.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord } from '#lib/json.ts'
import type { Embedder, Embedding, EmbedOptions } from './embedder.ts'

/** One question; servers that take less say so, and are asked for halves. */
const batchTextsMax = 64
const batchCharsMax = 262_144

export type EmbedPrefixes = { readonly query: string; readonly passage: string }

/** A model behind an upstream that answers `/embeddings` as OpenAI does. */
export function createUpstreamEmbedder(
  deps: AskDeps,
  {
    model,
    targets,
    prefixes,
  }: { model: string; targets: readonly Target[]; prefixes: EmbedPrefixes },
): Embedder {
  async function embedBatch(texts: readonly string[], options: EmbedOptions): Promise<Embedding> {
    try {
      return await askUpstream(deps, { targets, signal: options.signal }, (target) =>
        questionOf(target.model, texts, options.dims),
      )
    } catch (error) {
      if (texts.length === 1 || !mayBeTooMany(error)) throw error
      const half = Math.ceil(texts.length / 2)
      return join([
        await embedBatch(texts.slice(0, half), options),
        await embedBatch(texts.slice(half), options),
      ])
    }
  }

  return {
    model,
    async embed(texts, options) {
      const parts: Embedding[] = []
      const prefixed = texts.map((text) => prefixes[options.purpose] + text)
      for (const batch of batches(prefixed)) parts.push(await embedBatch(batch, options))
      return join(parts)
    },
  }
}

function questionOf(
  model: string,
  texts: readonly string[],
  dims: number | undefined,
): Question<Embedding> {
  return {
    path: '/embeddings',
    body: {
      model,
      input: texts,
      encoding_format: 'float',
      ...(dims === undefined ? {} : { dimensions: dims }),
    },
    read: (answer) => readAnswer(answer, texts.length),
  }
}

function* batches(texts: readonly string[]): Generator<string[]> {
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

/** Servers refuse more texts than they take in many words. */
function mayBeTooMany(error: unknown): boolean {
  return (
    error instanceof AppError &&
    ['invalid_request', 'request_too_large', 'context_length_exceeded'].includes(error.kind)
  )
}

function join(parts: readonly Embedding[]): Embedding {
  const dims = parts[0]?.dims ?? 0
  if (parts.some((part) => part.dims !== dims)) throw invalid('vectors of several lengths')
  const tokens = parts.map((part) => part.inputTokens)
  return {
    vectors: parts.flatMap((part) => part.vectors),
    dims,
    inputTokens: tokens.includes(null)
      ? null
      : tokens.reduce<number>((sum, n) => sum + (n ?? 0), 0),
  }
}

/** `{data: [{index, embedding: number[] | base64}], usage: {prompt_tokens}}`, in any order. */
function readAnswer(answer: unknown, count: number): Embedding {
  const { data, usage } = asRecord(answer)
  if (!Array.isArray(data) || data.length !== count) {
    const found = Array.isArray(data) ? data.length : 'no'
    throw invalid(`${found} vectors for ${count} texts`)
  }
  const vectors = new Array<Float32Array>(count)
  data.forEach((entry: unknown, at) => {
    const { index = at, embedding } = asRecord(entry)
    if (typeof index !== 'number' || !(index in data) || vectors[index] !== undefined) {
      throw invalid('a vector out of place')
    }
    vectors[index] = readVector(embedding)
  })
  const dims = vectors[0]?.length ?? 0
  if (vectors.some((vector) => vector.length !== dims)) throw invalid('vectors of several lengths')
  const tokens = isRecord(usage) ? usage['prompt_tokens'] : undefined
  return { vectors, dims, inputTokens: typeof tokens === 'number' ? tokens : null }
}

function readVector(value: unknown): Float32Array {
  const vector = typeof value === 'string' ? decodeVector(value) : readNumbers(value)
  if (vector.length === 0 || !vector.every(Number.isFinite)) {
    throw invalid('a vector that is not made of numbers')
  }
  if (vector.every((number) => number === 0)) throw invalid('a vector of nothing but zeros')
  return vector
}

function readNumbers(value: unknown): Float32Array {
  if (!Array.isArray(value) || !value.every((number) => typeof number === 'number')) {
    throw invalid('a vector that is not made of numbers')
  }
  return Float32Array.from(value)
}

/** Some servers answer in base64 whatever they are asked for. */
function decodeVector(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length % 4 !== 0) throw invalid('a vector that is cut off')
  return new Float32Array(new Uint8Array(bytes).buffer)
}

function invalid(what: string): AppError {
  return new AppError('upstream_invalid_answer', `The embedding upstream answered with ${what}.`)
}
