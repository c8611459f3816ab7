import { type CountedRequest, countableOf } from '#inference/countable.ts'
import { type ClassTokens, noTokens } from './content-class.ts'
import { estimateKnown, type KnownText, type KnownTexts } from './known-texts.ts'

/** A request as it is counted: each text with what is known of it. */
export type Measured = {
  readonly texts: readonly MeasuredText[]
  readonly templateTokens: number
  readonly opaqueTokens: number
}

export type MeasuredText = { readonly text: string; readonly known: KnownText }

export function measure(request: CountedRequest, known: KnownTexts): Measured {
  const { texts, templateTokens, opaqueTokens } = countableOf(request)
  return {
    texts: texts.map((text) => ({ text, known: known.of(text) })),
    templateTokens,
    opaqueTokens,
  }
}

/** The texts that this tokenizer did not count yet. */
export function uncounted({ texts }: Measured, tokenizer: string): MeasuredText[] {
  return texts.filter(({ known }) => !known.tokens.has(tokenizer))
}

/** Notes what a tokenizer counted, text for text. */
export function keepCounts(
  texts: readonly MeasuredText[],
  tokenizer: string,
  tokens: readonly number[],
): void {
  texts.forEach(({ known }, at) => {
    known.tokens.set(tokenizer, tokens[at] ?? 0)
  })
}

export function charsOf(texts: readonly MeasuredText[]): number {
  return texts.reduce((chars, { text }) => chars + text.length, 0)
}

export function byTokenizer(measured: Measured, tokenizer: string): ClassTokens {
  return sum(measured, ({ known }) => known.tokens.get(tokenizer) ?? 0)
}

export function byEstimate(measured: Measured): ClassTokens {
  return sum(measured, ({ known, text }) => estimateKnown(known, text))
}

function sum(measured: Measured, tokensOf: (text: MeasuredText) => number): ClassTokens {
  const counted = noTokens()
  counted.template = measured.templateTokens
  for (const text of measured.texts) counted[text.known.contentClass] += tokensOf(text)
  return counted
}
