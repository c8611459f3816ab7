import type { Embedder, Embedders } from '#embedding/embedder.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { type RequestContext, withSignal } from '#lib/request-context.ts'
import { withModelErrors } from '#retrieval/index/tables.ts'

/** The result of test calls. */
export type ModelProbe = {
  readonly model: string
  readonly dims: number
  /** See `Embedder`. */
  readonly passageTokensMax?: number
  /** Measured with a full batch. */
  readonly charsPerS: number
}

/** The batch size of the ingest; some servers fail only at large batches. */
const batchTexts = 64
/** About a paragraph. */
const wordsPerText = 60
const vocabulary = [...'abcdefghijklmnop'].map((letter, at) => `${letter}${'aeiou'[at % 5]}ndrel`)
const probeMsMax = 60_000
const millisPerSecond = 1_000

/**
 * Embeds one text and a full batch. Throws `unprocessable` if the name is not that of a model of mode
 * `embed`, and `upstream_error` (`embedding_probe_failed`).
 */
export async function probeModel(
  embedders: Embedders,
  name: string,
  context: RequestContext,
): Promise<ModelProbe> {
  const embedder = await withModelErrors(() => embedders.find(name, context.principal))
  const deadline = AbortSignal.any([context.signal, AbortSignal.timeout(probeMsMax)])
  const probeContext = withSignal(context, deadline)
  try {
    const dims = await measureDims(embedder, [textOf(0)], probeContext)
    const texts = Array.from({ length: batchTexts }, (_, at) => textOf(at))
    const startedAtMs = performance.now()
    const batchDims = await measureDims(embedder, texts, probeContext)
    const seconds = Math.max(performance.now() - startedAtMs, 1) / millisPerSecond
    if (batchDims !== dims) {
      throw invalid(`one text has ${dims} dimensions, a batch ${batchDims}`)
    }
    const chars = texts.reduce((sum, text) => sum + text.length, 0)
    const { model, passageTokensMax } = embedder
    const suitable = passageTokensMax === undefined ? {} : { passageTokensMax }
    return { model, dims, charsPerS: chars / seconds, ...suitable }
  } catch (error) {
    context.signal.throwIfAborted()
    throw probeFailed(
      name,
      deadline.aborted ? invalid(`no response within ${probeMsMax} ms`) : error,
    )
  }
}

/** The dimensions of the vectors; throws unless there is one valid vector per text. */
async function measureDims(
  embedder: Embedder,
  texts: readonly string[],
  context: RequestContext,
): Promise<number> {
  const { vectors } = await embedder.embed(texts, { purpose: 'passage', context })
  if (vectors.length !== texts.length) {
    throw invalid(`${vectors.length} vectors for ${texts.length} texts`)
  }
  const dims = vectors[0]?.length ?? 0
  if (dims === 0 || vectors.some((vector) => vector.length !== dims)) {
    throw invalid('vectors of different dimensions')
  }
  if (!vectors.every((vector) => vector.every(Number.isFinite))) {
    throw invalid('vectors with values that are not numbers')
  }
  if (vectors.some((vector) => vector.every((value) => value === 0))) {
    throw invalid('vectors of zeros')
  }
  return dims
}

function textOf(seed: number): string {
  return Array.from({ length: wordsPerText }, (_, position) => {
    return vocabulary[(seed + position * (seed + 1)) % vocabulary.length]
  }).join(' ')
}

function invalid(what: string): AppError {
  return new AppError('upstream_invalid_answer', `${what}.`)
}

function probeFailed(name: string, cause: unknown): AppError {
  const { message, retryAfterS } = toAppError(cause)
  return new AppError('upstream_error', `The probe of "${name}" failed: ${message}`, {
    code: 'embedding_probe_failed',
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
    cause,
  })
}
