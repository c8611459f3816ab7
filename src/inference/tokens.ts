import { assertNever } from '#lib/assert.ts'
import { type CountedRequest, countableOf } from './countable.ts'

/**
 * How many input tokens a model will probably see: instructions, items and tools. No tokenizer is
 * asked, only the characters are looked at, once each: English, code and JSON are off by 15 % or so,
 * other scripts lie between what newer and older tokenizers need, images go by their size, files
 * are a guess.
 */
export function estimateTokens(request: CountedRequest): number {
  const { texts, templateTokens, opaqueTokens } = countableOf(request)
  const textTokens = texts.reduce((tokens, text) => tokens + measureText(text), 0)
  return Math.ceil(textTokens + templateTokens + opaqueTokens)
}

/** How many tokens a model probably wrote for this text. */
export function estimateTextTokens(text: string): number {
  return Math.ceil(measureText(text))
}

/**
 * Tokenizers first split a text into runs: a word with what stands before it, up to three digits,
 * marks with the line breaks behind them, further white space. Each run is one token or a few.
 */
type Run = 'word' | 'number' | 'marks' | 'space' | 'line' | 'other'

/** A word of so many letters is mostly one token; further letters come in pieces. */
const commonWordChars = 6
const wordPieceChars = 3
/** Most words with a letter beyond ASCII are split at it. */
const accentTokens = 1
const numberPieceChars = 3
const commonMarksChars = 3
const marksPieceChars = 2
const spacesPerToken = 32
/** Longer than words and names, so it is data (base64, a hash), in pieces of two characters. */
const solidCharsMax = 24
const solidCharTokens = 0.3

/** The tokens of a text, not rounded. */
export function measureText(text: string): number {
  let tokens = 0
  let before: Run = 'line'
  let run: Run = 'line'
  let runChars = 0
  let solidChars = 0
  let wasLower = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const next = runOf(code)
    const isUpper = code >= 0x41 && code <= 0x5a
    // camelCase is several words.
    if (next !== run || (isUpper && wasLower)) {
      tokens += runTokens(run, runChars, before, next)
      before = run
      run = next
      runChars = 0
    }
    runChars++
    solidChars = next === 'word' || next === 'number' ? solidChars + 1 : 0
    if (solidChars > solidCharsMax) tokens += solidCharTokens
    if (code >= 0x80) tokens += foreignTokens(code)
    wasLower = next === 'word' && !isUpper
  }
  return tokens + runTokens(run, runChars, before, 'line')
}

function runOf(code: number): Run {
  const lower = code | 0x20
  if (lower >= 0x61 && lower <= 0x7a) return 'word'
  if (code >= 0x80) return isLatin(code) ? 'word' : 'other'
  if (code >= 0x30 && code <= 0x39) return 'number'
  if (code === 0x0a || code === 0x0d) return 'line'
  return code <= 0x20 ? 'space' : 'marks'
}

function isLatin(code: number): boolean {
  return (code >= 0xc0 && code < 0x250) || (code >= 0x1e00 && code < 0x1f00)
}

function runTokens(run: Run, chars: number, before: Run, next: Run): number {
  switch (run) {
    case 'word':
      return 1 + Math.max(0, chars - commonWordChars) / wordPieceChars
    case 'number':
      return Math.ceil(chars / numberPieceChars)
    case 'marks':
      // A single mark often goes with the word behind it.
      if (chars === 1 && next === 'word') return 0.8
      return 1 + Math.max(0, chars - commonMarksChars) / marksPieceChars
    case 'space':
      // The last space goes with the word or the marks behind it.
      if (next === 'number') return 1
      return chars === 1 ? 0 : 1 + chars / spacesPerToken
    case 'line':
      return chars === 0 || before === 'marks' || next === 'space' ? 0 : 1
    case 'other':
      return 0
    default:
      return assertNever(run)
  }
}

/** What one character beyond ASCII costs: between the needs of newer and of older tokenizers. */
function foreignTokens(code: number): number {
  if (isLatin(code)) return accentTokens
  if (code >= 0x370 && code < 0x400) return 0.55 // Greek
  if (code >= 0x400 && code < 0x590) return 0.4 // Cyrillic, Armenian
  if (code >= 0x590 && code < 0x800) return 0.55 // Hebrew, Arabic
  if (code >= 0x800 && code < 0x1200) return 0.65 // India, South East Asia
  return 1 // Chinese, Japanese, Korean, and signs; an emoji has two characters
}
