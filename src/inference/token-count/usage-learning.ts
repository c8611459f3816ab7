import type { CountedRequest } from '#inference/countable.ts'
import type { Calibration } from './calibration.ts'
import { estimateKnown, type KnownTexts } from './known-texts.ts'
import { byEstimate, charsOf, type Measured, measure } from './measured.ts'
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

/** Longer requests, and longer texts, cost too much to look at twice. */
const learnedCharsMax = 1_048_576
const textCharsMax = 131_072
/** What is estimated at one go: half a millisecond, in which nothing else happens. */
const charsAtOnce = 32_768
/** Nobody waits for what is learned. */
const tokenizerMs = 5_000

export function createUsageLearning(deps: UsageLearningDeps): UsageLearning {
  const { known, tokenizers, calibrations, everyMs } = deps
  let nextAtMs = 0

  const learnNow = async (model: string, request: CountedRequest, reportedTokens: number) => {
    const measured = measure(request, known)
    // What an image or a file costs is a guess, so it cannot tell about texts.
    if (measured.opaqueTokens > 0 || !isShort(measured)) return
    await estimateInTurns(measured)
    calibrations.estimate.learn(model, byEstimate(measured), reportedTokens)
    // It is not loaded for this.
    if (!tokenizers.isReady(builtInTokenizer)) return
    const given = { tokenizers, tokenizer: builtInTokenizer }
    const counted = await countByTokenizer(given, measured, tokenizerMs)
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

function isShort({ texts }: Measured): boolean {
  return charsOf(texts) <= learnedCharsMax && texts.every(({ text }) => text.length <= textCharsMax)
}

/** Estimates what was not estimated yet, and lets others work in between. */
async function estimateInTurns({ texts }: Measured): Promise<void> {
  let chars = 0
  for (const { known, text } of texts) {
    if (known.estimatedTokens !== null) continue
    estimateKnown(known, text)
    chars += text.length
    if (chars < charsAtOnce) continue
    chars = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
}
