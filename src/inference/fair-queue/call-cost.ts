import { type CallInput, charsOf, charsPerToken, promptChars } from '#inference/call-estimate.ts'
import type { Usage } from '#inference/events.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { mediaTokens } from '#inference/token-estimate.ts'
import { createLru } from '#lib/lru.ts'

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
    estimateTokens(model: string, input: CallInput | null): number {
      if (input === null) return 1
      if ('text' in input) return input.text.length / charsPerToken
      if ('texts' in input) return charsOf(input.texts) / charsPerToken
      if ('documents' in input) {
        return (charsOf(input.documents) + input.query.length) / charsPerToken
      }
      const { outputTokens, uncachedShare } = useOf(model)
      const outputMax = input.sampling.maxOutputTokens ?? Number.POSITIVE_INFINITY
      return inputTokensOf(input) * uncachedShare + Math.min(outputTokens, outputMax)
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

function inputTokensOf(request: GenerationRequest): number {
  let media = 0
  for (const item of request.items) {
    if (!('parts' in item)) continue
    for (const part of item.parts) if (!('text' in part)) media += mediaTokens(part)
  }
  return promptChars(request) / charsPerToken + media + request.tools.length * toolTokens
}
