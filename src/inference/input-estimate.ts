import type { EmbeddingInput } from './embeddings.ts'
import type { GenerationRequest } from './request.ts'
import type { RerankInput } from './rerank.ts'
import { countChars } from './token-estimate.ts'

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
