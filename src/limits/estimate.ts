import type { EmbeddingInput } from '#inference/embeddings.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { RerankInput } from '#inference/rerank.ts'
import { countChars } from '#inference/token-estimate.ts'

/** A common ratio; the reservation is corrected by the usage that the upstream reports. */
const charsPerToken = 4
/** The definition of a tool, without rendering its schema. */
const toolTokens = 100

/** The input tokens of a call, cheaply. */
export function estimateInput(input: GenerationRequest | EmbeddingInput | RerankInput): number {
  if ('items' in input) {
    const { instructions, items, tools } = input
    const chars = countChars(items) + (instructions?.length ?? 0)
    return tokensOf(chars) + tools.length * toolTokens
  }
  if ('texts' in input) return tokensOf(charsOf(input.texts))
  return tokensOf(charsOf(input.documents) + input.query.length * input.documents.length)
}

export function tokensOf(chars: number): number {
  return Math.ceil(chars / charsPerToken)
}

function charsOf(texts: readonly string[]): number {
  let chars = 0
  for (const text of texts) chars += text.length
  return chars
}

/** Before a model has answered, in tokens. */
const firstMean = 500
/** The weight of the newest output. */
const newestShare = 0.1
/** Models with a mean of their own. */
const modelsMax = 1_000

export type OutputEstimate = ReturnType<typeof createOutputEstimate>

/**
 * The output tokens of a generation: the mean of its model, at most what it asks for. Clients ask for
 * the most that a model can write, so that alone would reserve far too much.
 */
export function createOutputEstimate() {
  const means = new Map<string, number>()
  return {
    of: (model: string, maxOutputTokens: number | null): number =>
      Math.min(
        Math.ceil(means.get(model) ?? firstMean),
        maxOutputTokens ?? Number.POSITIVE_INFINITY,
      ),
    learn(model: string, outputTokens: number): void {
      const mean = means.get(model)
      if (mean === undefined && means.size >= modelsMax) return
      const next = mean ?? firstMean
      means.set(model, next + (outputTokens - next) * newestShare)
    },
  }
}
