import { type CountedRequest, countableOf, measureText } from '#inference/token-estimate.ts'
import { createLru, type Lru } from '#lib/lru.ts'

/** Kinds of text for which tokenizers differ in different ways. */
export type ContentClass = 'prose' | 'code' | 'script'

/** Tokens per kind of text; `template` is what the chat template adds around the texts. */
export type ClassTokens = Record<ContentClass | 'template', number>

export function noTokens(): ClassTokens {
  return { prose: 0, code: 0, script: 0, template: 0 }
}

export function sumOf({ prose, code, script, template }: ClassTokens): number {
  return prose + code + script + template
}

/** Classification reads the beginning of a text. */
const sampleChars = 400
/** About every twentieth character of prose is a mark or a digit; of code and JSON every fifth. */
const codeShareMin = 0.12
const scriptShareMin = 0.2

/** `prose`: Latin words. `code`: code, JSON and tables. `script`: other scripts. */
export function classifyText(text: string): ContentClass {
  const chars = Math.min(text.length, sampleChars)
  let marks = 0
  let foreign = 0
  for (let at = 0; at < chars; at++) {
    const code = text.charCodeAt(at)
    const lower = code | 0x20
    if (code >= 0x250) foreign++
    else if (code > 0x20 && code < 0x80 && !(lower >= 0x61 && lower <= 0x7a)) marks++
  }
  if (foreign > chars * scriptShareMin) return 'script'
  return marks > chars * codeShareMin ? 'code' : 'prose'
}

/** Cached counts of one text. */
type TextCounts = {
  /** Identifies the text, which is not kept. */
  readonly key: string
  readonly contentClass: ContentClass
  estimatedTokens: number | null
  /** By tokenizer; null for most texts, which are only estimated. */
  tokens: Map<string, number> | null
}

/** Caches counts by content, so that a growing conversation costs only its new messages. */
export class TextCountCache {
  readonly #cache: Lru<string, TextCounts>
  // A secret seed: clients cannot construct colliding texts.
  readonly #seed = crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n

  constructor({ textsMax }: { textsMax: number }) {
    this.#cache = createLru(textsMax)
  }

  of(text: string): TextCounts {
    const key = `${Bun.hash(text, this.#seed).toString(36)} ${text.length}`
    const cached = this.#cache.get(key)
    if (cached !== undefined) return cached
    const contentClass = classifyText(text)
    const counts: TextCounts = { key, contentClass, estimatedTokens: null, tokens: null }
    this.#cache.set(key, counts)
    return counts
  }
}

export type MeasuredText = { readonly text: string; readonly counts: TextCounts }

/** A request prepared for counting. */
export type MeasuredRequest = {
  readonly texts: readonly MeasuredText[]
  readonly templateTokens: number
  /** Of images and files. */
  readonly opaqueTokens: number
}

export function measureRequest(request: CountedRequest, cache: TextCountCache): MeasuredRequest {
  const { texts, templateTokens, opaqueTokens } = countableOf(request)
  return {
    texts: texts.map((text) => ({ text, counts: cache.of(text) })),
    templateTokens,
    opaqueTokens,
  }
}

export function charsOf(texts: readonly MeasuredText[]): number {
  return texts.reduce((chars, { text }) => chars + text.length, 0)
}

export function estimateText({ counts, text }: MeasuredText): number {
  counts.estimatedTokens ??= measureText(text)
  return counts.estimatedTokens
}

export function estimatedTokens(request: MeasuredRequest): ClassTokens {
  return sumByClass(request, estimateText)
}

/** The tokens of a tokenizer that has counted every text. */
export function tokenizedTokens(request: MeasuredRequest, tokenizer: string): ClassTokens {
  return sumByClass(request, ({ counts }) => counts.tokens?.get(tokenizer) ?? 0)
}

function sumByClass(
  request: MeasuredRequest,
  tokensOf: (text: MeasuredText) => number,
): ClassTokens {
  const sums = noTokens()
  sums.template = request.templateTokens
  for (const text of request.texts) sums[text.counts.contentClass] += tokensOf(text)
  return sums
}
