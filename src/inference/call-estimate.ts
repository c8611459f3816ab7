import type { EmbeddingInput } from './embeddings.ts'
import { type Usage, usageOfTokens } from './events.ts'
import type { CallRecord } from './open-call.ts'
import type { GenerationRequest } from './request.ts'
import type { RerankInput } from './rerank.ts'
import type { SpeakInput } from './speak.ts'
import { countChars } from './token-estimate.ts'

/** What a call sends to a model. */
export type CallInput = GenerationRequest | EmbeddingInput | RerankInput | SpeakInput

/** A common ratio; a reservation is corrected by the usage that the upstream reports. */
export const charsPerToken = 4
/** The definition of a tool, without rendering its schema. */
const toolTokens = 100

/** The input tokens of a call, cheaply. */
export function estimateInput(input: CallInput): number {
  if ('items' in input) return tokensOf(promptChars(input)) + input.tools.length * toolTokens
  // Speech is charged by characters.
  if ('text' in input) return input.text.length
  if ('texts' in input) return tokensOf(charsOf(input.texts))
  return tokensOf(charsOf(input.documents) + input.query.length * input.documents.length)
}

/**
 * What a call used whose upstream reported no usage, since it was cancelled, say. One that had output
 * used about what it sent; one that failed before used nothing.
 */
export function estimateUsage(
  { firstEventMs, outputChars }: Pick<CallRecord, 'firstEventMs' | 'outputChars'>,
  inputTokens: number,
): Usage {
  const usage = usageOfTokens(firstEventMs === null ? 0 : inputTokens, tokensOf(outputChars))
  return { ...usage, estimated: true }
}

/** The characters of a prompt; without tools, images, files and sealed payloads. */
export function promptChars({ instructions, items }: GenerationRequest): number {
  return countChars(items) + (instructions?.length ?? 0)
}

export function charsOf(texts: readonly string[]): number {
  let chars = 0
  for (const text of texts) chars += text.length
  return chars
}

function tokensOf(chars: number): number {
  return Math.ceil(chars / charsPerToken)
}
