import type { CountedRequest } from '#inference/token-estimate.ts'
import { createLru, type Lru } from '#lib/lru.ts'
import {
  type ClassTokens,
  charsOf,
  estimatedTokens,
  estimateText,
  type MeasuredRequest,
  measureRequest,
  noTokens,
  type TextCountCache,
} from './measured-text.ts'
import { builtInTokenizer, countByTokenizer, type Tokenizers } from './tokenizers.ts'

const factorMin = 0.8
const factorMax = 1.6
/** The share of the last error that is corrected; older reports weigh less. */
const learningRate = 0.25
/** A report outside of this range was not about the same request. */
const plausibleRatioMin = 0.33
const plausibleRatioMax = 3
/** In a shorter request the template dominates. */
const reportedTokensMin = 32

const neutralFactors: Readonly<ClassTokens> = { prose: 1, code: 1, script: 1, template: 1 }
const classes = ['prose', 'code', 'script', 'template'] as const

/**
 * Learns from reported usage how far a way of counting is off: a factor per model and kind of text.
 * Images and files are not part of it.
 */
export class Calibration {
  readonly #factorsByModel: Lru<string, ClassTokens>

  constructor({ modelsMax }: { modelsMax: number }) {
    this.#factorsByModel = createLru(modelsMax)
  }

  /** The corrected tokens for this model. */
  correct(model: string, counted: ClassTokens): number {
    return weightedSum(this.#factorsByModel.get(model) ?? neutralFactors, counted)
  }

  /** `reportedTokens`: the input tokens that the upstream reported for the same request. */
  learn(model: string, counted: ClassTokens, reportedTokens: number) {
    const ratio = reportedTokens / weightedSum(neutralFactors, counted)
    if (reportedTokens < reportedTokensMin) return
    if (!(ratio >= plausibleRatioMin && ratio <= plausibleRatioMax)) return
    const error = reportedTokens - this.correct(model, counted)
    const factors = this.#factorsByModel.get(model) ?? neutralFactors
    this.#factorsByModel.set(model, adjust(factors, counted, error * learningRate))
  }
}

function weightedSum(factors: ClassTokens, counted: ClassTokens): number {
  return classes.reduce((tokens, name) => tokens + factors[name] * counted[name], 0)
}

/**
 * Distributes an error over the classes by their share of the request (normalised least mean
 * squares). With a single class this is an exponential mean of the ratios.
 */
function adjust(factors: ClassTokens, counted: ClassTokens, error: number): ClassTokens {
  const square = classes.reduce((sum, name) => sum + counted[name] ** 2, 0)
  const adjusted = noTokens()
  for (const name of classes) {
    const factor = factors[name] + (error * counted[name]) / square
    adjusted[name] = Math.min(factorMax, Math.max(factorMin, factor))
  }
  return adjusted
}

type UsageLearningDeps = {
  cache: TextCountCache
  tokenizers: Tokenizers
  calibrations: { readonly tokenizer: Calibration; readonly estimate: Calibration }
  /** At most one generation per interval is sampled. */
  everyMs: number
}

/** Longer requests and texts are not sampled: counting them again costs too much. */
const sampledCharsMax = 1_048_576
const sampledTextCharsMax = 131_072
/** Characters that are estimated without a pause: half a millisecond of blocking work. */
const charsPerSlice = 32_768
const tokenizerLimitMs = 5_000

/** Returns a function that compares counts with reported usage, for a sample of finished generations. */
export function createUsageLearning(deps: UsageLearningDeps) {
  const { cache, tokenizers, calibrations, everyMs } = deps
  let nextAtMs = 0

  const learnNow = async (model: string, request: CountedRequest, reportedTokens: number) => {
    const measured = measureRequest(request, cache)
    // The tokens of images and files are a guess, which would distort the factors of texts.
    if (measured.opaqueTokens > 0 || !isShort(measured)) return
    await estimateInSlices(measured)
    calibrations.estimate.learn(model, estimatedTokens(measured), reportedTokens)
    // The tokenizer is not loaded just to learn.
    if (!tokenizers.isReady(builtInTokenizer)) return
    const tokenizer = { tokenizers, tokenizer: builtInTokenizer }
    const counted = await countByTokenizer(tokenizer, measured, tokenizerLimitMs)
    if (counted !== null) calibrations.tokenizer.learn(model, counted, reportedTokens)
  }
  return (model: string, request: CountedRequest, reportedTokens: number) => {
    if (performance.now() < nextAtMs) return
    nextAtMs = performance.now() + everyMs
    // After the response was sent.
    setTimeout(learnNow, 0, model, request, reportedTokens)
  }
}

function isShort({ texts }: MeasuredRequest): boolean {
  return (
    charsOf(texts) <= sampledCharsMax &&
    texts.every(({ text }) => text.length <= sampledTextCharsMax)
  )
}

/** Estimates the texts that have no estimate yet, yielding to the event loop in between. */
async function estimateInSlices({ texts }: MeasuredRequest): Promise<void> {
  let chars = 0
  for (const text of texts) {
    if (text.counts.estimatedTokens !== null) continue
    estimateText(text)
    chars += text.text.length
    if (chars < charsPerSlice) continue
    chars = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
}
