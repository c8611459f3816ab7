import { measureText } from '#inference/token-estimate.ts'
import type { DocumentText } from '#retrieval/extraction/document-text.ts'
import type { Chunk } from '#retrieval/index/chunk.ts'

export type SplitLimits = {
  /** Estimated, without a tokenizer. */
  readonly tokensMax: number
  /** Tokens that a passage repeats from the previous one, at most. */
  readonly overlapTokens: number
}

/** From `start` to before `end`, in characters. */
type Span = { readonly start: number; readonly end: number }
type MeasuredSpan = Span & { readonly tokens: number }

/** A part below this share of the maximum joins the next one, such as a heading. */
const smallShare = 1 / 4
/** Two joined parts may have a few tokens more than their sum. */
const joinTokens = 2

/**
 * Splits a text at headings, paragraphs, lines and sentences; between or within words only if there
 * is no better boundary. A passage repeats the end of the previous one, except at headings. Lazy,
 * since long texts take seconds.
 */
export function* splitText(
  { text, pages }: DocumentText,
  { tokensMax, overlapTokens }: SplitLimits,
): Generator<Chunk> {
  const split = createSplitter(text, Math.max(1, tokensMax - overlapTokens - joinTokens))
  let ordinal = 0
  let page = 0
  let previous: Span | null = null
  for (const window of windowsOf(text)) {
    for (const untrimmed of split(window, 0)) {
      const body = trim(text, untrimmed)
      if (body.start === body.end) continue
      while ((pages?.[page] ?? Number.POSITIVE_INFINITY) <= body.start) page += 1
      const start =
        previous === null ? body.start : overlapStart(text, { previous, body, overlapTokens })
      yield {
        ordinal,
        text: text.slice(start, body.end),
        page: pages === null ? null : Math.max(page, 1),
        start,
        end: body.end,
      }
      ordinal += 1
      previous = body
    }
  }
}

/** Splits spans at the best kind of boundary that yields parts of at most `tokensMax`. */
function createSplitter(text: string, tokensMax: number) {
  const measure = ({ start, end }: Span): MeasuredSpan => ({
    start,
    end,
    tokens: measureText(text.slice(start, end)),
  })

  function split(span: Span, level: number): MeasuredSpan[] {
    const whole = measure(span)
    if (whole.tokens <= tokensMax) return [whole]
    const findBoundaries = boundaryKinds[level]
    if (findBoundaries === undefined) return splitWords(whole)
    const parts: MeasuredSpan[] = []
    const add = (part: MeasuredSpan) => {
      const last = parts.at(-1)
      if (last === undefined || last.tokens + part.tokens > tokensMax) parts.push(part)
      else parts.splice(-1, 1, { ...part, start: last.start, tokens: last.tokens + part.tokens })
    }
    for (const part of splitAt(span, findBoundaries(text, span)).map(measure)) {
      if (part.tokens <= tokensMax) {
        add(part)
        continue
      }
      const isSmall = (parts.at(-1)?.tokens ?? tokensMax) < tokensMax * smallShare
      const start = isSmall ? (parts.pop()?.start ?? part.start) : part.start
      for (const smaller of split({ start, end: part.end }, level + 1)) add(smaller)
    }
    return parts
  }

  function splitWords(span: MeasuredSpan): MeasuredSpan[] {
    const parts: MeasuredSpan[] = []
    let rest = span
    while (rest.tokens > tokensMax) {
      let chars = Math.floor(((rest.end - rest.start) * tokensMax) / rest.tokens)
      let part = measure({ start: rest.start, end: endAfter(rest.start, chars) })
      while (part.tokens > tokensMax && chars > 1) {
        chars = Math.floor(chars * 0.8)
        part = measure({ start: rest.start, end: endAfter(rest.start, chars) })
      }
      parts.push(part)
      rest = measure({ start: part.end, end: rest.end })
    }
    return [...parts, rest]
  }

  /** Includes at least one character. */
  const endAfter = (start: number, chars: number) => {
    const end = characterBoundary(text, start + Math.max(chars, 1))
    return end > start ? end : start + 2
  }
  return split
}

function trim(text: string, { start, end }: Span): Span {
  const part = text.slice(start, end)
  const begin = start + part.length - part.trimStart().length
  return { start: begin, end: Math.max(begin, start + part.trimEnd().length) }
}

/** An upper bound for all languages, which limits the search for an overlap. */
const charsPerTokenMax = 16

/** The start of a passage that repeats the end of the previous one: whole sentences if they fit, else words. */
function overlapStart(
  text: string,
  { previous, body, overlapTokens }: { previous: Span; body: Span; overlapTokens: number },
): number {
  if (overlapTokens === 0 || /^#{1,6} /.test(text.slice(body.start, body.start + 8))) {
    return body.start
  }
  const start = Math.max(previous.start, previous.end - overlapTokens * charsPerTokenMax)
  const span = { start, end: previous.end }
  for (const findBoundaries of boundaryKinds.slice(-2)) {
    const boundaries = [...findBoundaries(text, span)]
    const found = boundaries.find(
      (boundary) =>
        boundary > start &&
        boundary < previous.end &&
        measureText(text.slice(boundary, body.start)) <= overlapTokens,
    )
    if (found !== undefined) return trim(text, { start: found, end: previous.end }).start
  }
  return body.start
}

type FindBoundaries = (text: string, span: Span) => Iterable<number>

/** Headings, paragraphs, lines, sentences, words. */
const boundaryKinds: readonly FindBoundaries[] = [
  matches(/^#{1,6} /gm),
  matches(/(?<=\n)\n+/g),
  matches(/\n/g),
  sentences,
  matches(/\s/g),
]

/** Boundaries before headings, and after all other matches. */
function matches(pattern: RegExp): FindBoundaries {
  return function* (text, { start, end }) {
    for (const match of text.slice(start, end).matchAll(pattern)) {
      const isHeading = match[0].startsWith('#')
      yield start + match.index + (isHeading ? 0 : match[0].length)
    }
  }
}

const segmenter = new Intl.Segmenter('und', { granularity: 'sentence' })

function* sentences(text: string, { start, end }: Span): Iterable<number> {
  for (const { index } of segmenter.segment(text.slice(start, end))) yield start + index
}

/** The non-empty parts between the boundaries. */
function splitAt(span: Span, boundaries: Iterable<number>): Span[] {
  const parts: Span[] = []
  let start = span.start
  for (const boundary of boundaries) {
    if (boundary <= start || boundary >= span.end) continue
    parts.push({ start, end: boundary })
    start = boundary
  }
  parts.push({ start, end: span.end })
  return parts
}

/** The index, or the one before it if it is within a surrogate pair. */
function characterBoundary(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code >= 0xdc00 && code <= 0xdfff ? index - 1 : index
}

/** Bounds the time that the event loop is blocked. */
const windowChars = 65_536

/** Windows that end between paragraphs if possible. */
function* windowsOf(text: string): Iterable<Span> {
  for (let start = 0; start < text.length; ) {
    const end = windowEnd(text, start)
    yield { start, end }
    start = end
  }
}

function windowEnd(text: string, start: number): number {
  const end = start + windowChars
  if (end >= text.length) return text.length
  for (const separator of ['\n\n', '\n', '. ', ' ']) {
    const found = text.lastIndexOf(separator, end - separator.length)
    if (found > start + windowChars / 2) return found + separator.length
  }
  return characterBoundary(text, end)
}
