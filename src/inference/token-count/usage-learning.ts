import type { CountedRequest } from '#inference/countable.ts'
import type { Calibration } from './calibration.ts'
import type { KnownTexts } from './known-texts.ts'
import { byEstimate, charsOf, measure } from './measured.ts'
import { builtInTokenizer } from './thread-messages.ts'
import { countByTokenizer } from './tokenizer-counts.ts'
import type { Tokenizers } from './tokenizers.ts'

/** Holds counts against what upstreams report, now and then, when an answer is over. */
export type UsageLearning = {
  learn(model: string, request: CountedRequest, reportedTokens: number): void
}

export type UsageLearningDeps = {
  known: KnownTexts
  tokenizers: Tokenizers
  calibrations: { readonly tokenizer: Calibration; readonly estimate: Calibration }
  /** At most one generation in such a time is looked at. */
  everyMs: number
}

/** Longer requests cost too much to look at twice. */
const learnedCharsMax = 262_144
const waitMs = 5_000

export function createUsageLearning(deps: UsageLearningDeps): UsageLearning {
  const { known, tokenizers, calibrations, everyMs } = deps
  let nextAtMs = 0

  const learnNow = async (model: string, request: CountedRequest, reportedTokens: number) => {
    const measured = measure(request, known)
    // What an image or a file costs is a guess, so it cannot tell about texts.
    if (measured.opaqueTokens > 0 || charsOf(measured.texts) > learnedCharsMax) return
    calibrations.estimate.learn(model, byEstimate(measured), reportedTokens)
    // It is not loaded for this.
    if (!tokenizers.isReady(builtInTokenizer)) return
    const given = { tokenizers, tokenizer: builtInTokenizer }
    const counted = await countByTokenizer(given, measured, waitMs)
    if (counted !== null) calibrations.tokenizer.learn(model, counted, reportedTokens)
  }
  return {
    learn(model, request, reportedTokens) {
      if (performance.now() < nextAtMs) return
      nextAtMs = performance.now() + everyMs
      // The answer that this was learned from goes out first.
      setTimeout(learnNow, 0, model, request, reportedTokens)
    },
  }
}
