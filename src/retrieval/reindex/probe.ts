import type { Embedder, Embedders } from '#embedding/embedder.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { createBackgroundContext } from '#lib/request-context.ts'

/** What a model has shown of itself. */
export type Probe = {
  readonly model: string
  readonly dims: number
  /** Of a full batch. */
  readonly charsPerS: number
}

/** As many as the ingest sends at once: some servers fail at large batches alone. */
const batchTexts = 64
/** Each about as long as a paragraph. */
const wordsPerText = 60
const words = [...'abcdefghijklmnop'].map((letter, at) => `${letter}${'aeiou'[at % 5]}ndrel`)
const probeMsMax = 60_000
const millisPerSecond = 1_000

/**
 * Asks a model for one vector and for a full batch. Throws `unprocessable` for a name that is no model
 * of mode `embed`, and `upstream_error` of code `embedding_probe_failed`.
 */
export async function probeModel(
  embedders: Embedders,
  name: string,
  signal: AbortSignal,
): Promise<Probe> {
  const embedder = await findEmbedder(embedders, name)
  const within = AbortSignal.any([signal, AbortSignal.timeout(probeMsMax)])
  try {
    const dims = await ask(embedder, [textOf(0)], within)
    const texts = Array.from({ length: batchTexts }, (_, at) => textOf(at))
    const startedAt = performance.now()
    const batchDims = await ask(embedder, texts, within)
    const seconds = Math.max(performance.now() - startedAt, 1) / millisPerSecond
    if (batchDims !== dims) {
      throw wrong(`one text got ${dims} numbers, and a batch ${batchDims} numbers each`)
    }
    const chars = texts.reduce((sum, text) => sum + text.length, 0)
    return { model: embedder.model, dims, charsPerS: chars / seconds }
  } catch (error) {
    signal.throwIfAborted()
    throw failed(name, within.aborted ? wrong(`no answer within ${probeMsMax} ms`) : error)
  }
}

async function findEmbedder(embedders: Embedders, name: string): Promise<Embedder> {
  try {
    return await embedders.find(name)
  } catch (error) {
    const isName = error instanceof AppError && /^model_(not_found|mode_mismatch)$/.test(error.kind)
    if (!isName) throw error
    throw new AppError('unprocessable', error.message, {
      param: 'embedding_model',
      code: error.kind,
    })
  }
}

/** How long its vectors are, which must be as many as there are texts, and vectors. */
async function ask(
  embedder: Embedder,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const { vectors } = await embedder.embed(texts, {
    purpose: 'passage',
    context: createBackgroundContext(signal),
  })
  if (vectors.length !== texts.length) {
    throw wrong(`${vectors.length} vectors came for ${texts.length} texts`)
  }
  const dims = vectors[0]?.length ?? 0
  if (dims === 0 || vectors.some((vector) => vector.length !== dims)) {
    throw wrong('vectors of several lengths came')
  }
  if (!vectors.every((vector) => vector.every(Number.isFinite))) {
    throw wrong('vectors came that are not made of numbers')
  }
  if (vectors.some((vector) => vector.every((value) => value === 0))) {
    throw wrong('vectors of nothing but zeros came')
  }
  return dims
}

function textOf(at: number): string {
  return Array.from({ length: wordsPerText }, (_, place) => {
    return words[(at + place * (at + 1)) % words.length]
  }).join(' ')
}

function wrong(what: string): AppError {
  return new AppError('upstream_invalid_answer', `${what}.`)
}

function failed(name: string, cause: unknown): AppError {
  const { message, retryAfterS } = toAppError(cause)
  return new AppError('upstream_error', `"${name}" failed when it was tried: ${message}`, {
    code: 'embedding_probe_failed',
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
    cause,
  })
}
