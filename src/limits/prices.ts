import type { ModelPrice } from './config.ts'

/** The tokens that are charged; cached ones and those written to a cache are part of the input. */
export type ChargedTokens = {
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
}

/** A price per million tokens in billionths: one token costs a thousand times its price in them. */
const nanosPerToken = 1_000
/** One unit of the currency in billionths. */
export const nanosPerUnit = 1e9

/** Billionths of the currency; null without a price of the model. */
export function costNanosOf(
  prices: Readonly<Record<string, ModelPrice>>,
  model: string,
  { inputTokens, cachedTokens, outputTokens }: ChargedTokens,
): number | null {
  const price = Object.hasOwn(prices, model) ? prices[model] : undefined
  if (price === undefined) return null
  const { input_per_million: input, output_per_million: output } = price
  const cachedInput = price.cached_input_per_million ?? input
  const cached = Math.min(cachedTokens, inputTokens)
  const perToken = (inputTokens - cached) * input + cached * cachedInput + outputTokens * output
  return Math.round(perToken * nanosPerToken)
}
