import type { EmbeddingInput } from '#inference/embeddings.ts'
import type { Usage } from '#inference/events.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { RerankInput } from '#inference/rerank.ts'
import { countChars, mediaTokens } from '#inference/token-estimate.ts'
import { createLru } from '#lib/lru.ts'

/** What a call asks of a model. */
export type CallWork = GenerationRequest | EmbeddingInput | RerankInput

const charsPerToken = 4
/** A definition of a tool, which is not measured: a schema would have to be serialised. */
const toolTokens = 150
/** Until a model has been seen to respond. */
const outputTokensDefault = 300
/** The weight of the latest call in the means. */
const latestWeight = 1 / 16
const modelsMax = 1_000

type ExpectedUse = { outputTokens: number; uncachedShare: number }

/**
 * Prices of calls: uncached input tokens plus expected output tokens. The means per model are learned
 * from calls that waited, so a call that need not wait costs nothing here.
 */
export function createCallCosts() {
  const expected = createLru<string, ExpectedUse>(modelsMax)
  const useOf = (model: string) =>
    expected.get(model) ?? { outputTokens: outputTokensDefault, uncachedShare: 1 }
  return {
    estimateTokens(model: string, work: CallWork | null): number {
      if (work === null) return 1
      if ('texts' in work) return tokensOf(work.texts)
      if ('documents' in work) return tokensOf(work.documents) + tokensOf([work.query])
      const { outputTokens, uncachedShare } = useOf(model)
      const outputMax = work.sampling.maxOutputTokens ?? Number.POSITIVE_INFINITY
      return inputTokensOf(work) * uncachedShare + Math.min(outputTokens, outputMax)
    },

    /** The real cost of a call, from which the next estimates learn. */
    settledTokens(model: string, usage: Usage): number {
      const uncached = Math.max(0, usage.inputTokens - usage.cachedTokens)
      const { outputTokens, uncachedShare } = useOf(model)
      const share = usage.inputTokens > 0 ? uncached / usage.inputTokens : 1
      expected.set(model, {
        outputTokens: outputTokens + (usage.outputTokens - outputTokens) * latestWeight,
        uncachedShare: uncachedShare + (share - uncachedShare) * latestWeight,
      })
      return uncached + usage.outputTokens
    },
  }
}

function inputTokensOf({ instructions, items, tools }: GenerationRequest): number {
  let media = 0
  for (const item of items) {
    if (!('parts' in item)) continue
    for (const part of item.parts) if (!('text' in part)) media += mediaTokens(part)
  }
  const chars = countChars(items) + (instructions?.length ?? 0)
  return chars / charsPerToken + media + tools.length * toolTokens
}

function tokensOf(texts: readonly string[]): number {
  let chars = 0
  for (const text of texts) chars += text.length
  return chars / charsPerToken
}
