import { AppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import type { AdapterContext } from './upstream.ts'
import { readNumber } from './upstream-fields.ts'
import { postJson } from './upstream-http.ts'

export type EmbeddingInput = {
  readonly texts: readonly string[]
  /** Local models embed queries first, and with another prefix. */
  readonly purpose?: 'query' | 'passage'
  /** The document that the passages are of; local models read it with each of them. */
  readonly title?: string
  /** Shorter vectors than the model's own, if it can produce them. */
  readonly dims?: number
}

/** One vector per text, in order, all of the same length, finite and not zero. */
export type Embeddings = {
  readonly vectors: readonly Float32Array[]
  readonly dims: number
  readonly inputTokens: number | null
}

/** POST /embeddings as OpenAI defines it. */
export async function postEmbeddings(
  { texts, dims }: EmbeddingInput,
  context: AdapterContext,
): Promise<Embeddings> {
  const response = await postJson(context, '/embeddings', {
    model: context.model,
    input: texts,
    encoding_format: 'float',
    ...(dims === undefined ? {} : { dimensions: dims }),
  })
  return readEmbeddings(response, texts.length)
}

/** Reads `{data: [{index, embedding: number[] | base64}], usage: {prompt_tokens}}`, in any order. */
function readEmbeddings(response: unknown, count: number): Embeddings {
  const { data, usage } = asRecord(response)
  if (!Array.isArray(data) || data.length !== count) {
    const found = Array.isArray(data) ? data.length : 'no'
    throw invalidEmbeddings(`${found} vectors for ${count} texts`)
  }
  const vectors = new Array<Float32Array>(count)
  data.forEach((entry: unknown, position) => {
    const { index = position, embedding } = asRecord(entry)
    if (typeof index !== 'number' || !(index in data) || vectors[index] !== undefined) {
      throw invalidEmbeddings('a vector with a wrong index')
    }
    vectors[index] = readVector(embedding)
  })
  const dims = vectors[0]?.length ?? 0
  if (vectors.some((vector) => vector.length !== dims)) throw mixedDimensions()
  return { vectors, dims, inputTokens: readNumber(asRecord(usage)['prompt_tokens']) }
}

export function mixedDimensions(): AppError {
  return invalidEmbeddings('vectors of different lengths')
}

function readVector(value: unknown): Float32Array {
  // Some servers respond in base64 regardless of the requested encoding.
  const vector = typeof value === 'string' ? decodeVector(value) : readNumbers(value)
  if (vector.length === 0 || !vector.every(Number.isFinite)) {
    throw invalidEmbeddings('a vector that is not numeric')
  }
  if (vector.every((number) => number === 0)) throw invalidEmbeddings('a zero vector')
  return vector
}

function readNumbers(value: unknown): Float32Array {
  if (!Array.isArray(value) || !value.every((number) => typeof number === 'number')) {
    throw invalidEmbeddings('a vector that is not numeric')
  }
  return Float32Array.from(value)
}

function decodeVector(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length % 4 !== 0) throw invalidEmbeddings('a truncated vector')
  return new Float32Array(new Uint8Array(bytes).buffer)
}

function invalidEmbeddings(found: string): AppError {
  return new AppError('upstream_invalid_answer', `The embedding upstream returned ${found}.`)
}
