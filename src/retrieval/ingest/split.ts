import { measureText } from '#inference/tokens.ts'
import type { DocumentText } from '#retrieval/extraction/document-text.ts'
import type { Chunk } from '#retrieval/index/chunk.ts'
import { cutAt, cuts, type Span, wholeCharacter, windowsOf } from './cuts.ts'

export type Splitting = {
  /** The longest passage, by the estimate that serves where no tokenizer is asked. */
  readonly tokensMax: number
  /** What neighbours have in common, at most. */
  readonly overlapTokens: number
}

/** A part of a passage that is shorter than this is not left alone: a heading goes with what follows. */
const lonelyShare = 1 / 4
/** Two parts together may be a little more than their sum. */
const joinTokens = 2

/**
 * Passages that end where a reader would pause: before headings, between paragraphs, lines and
 * sentences, and only where there is no such place between words or within one. A passage begins
 * with the end of the one before it, except at a heading. Comes passage by passage, since the whole
 * of a long text takes seconds.
 */
export function* splitText(
  { text, pages }: DocumentText,
  { tokensMax, overlapTokens }: Splitting,
): Generator<Chunk> {
  const split = createSplitter(text, Math.max(1, tokensMax - overlapTokens - joinTokens))
  let ordinal = 0
  let page = 0
  let before: Span | null = null
  for (const window of windowsOf(text)) {
    for (const untrimmed of split(window, 0)) {
      const body = trim(text, untrimmed)
      if (body.start === body.end) continue
      while ((pages?.[page] ?? Number.POSITIVE_INFINITY) <= body.start) page += 1
      const start =
        before === null ? body.start : overlapStart(text, { before, body, overlapTokens })
      yield {
        ordinal,
        text: text.slice(start, body.end),
        page: pages === null ? null : Math.max(page, 1),
        start,
        end: body.end,
      }
      ordinal += 1
      before = body
    }
  }
}

type Measured = Span & { readonly tokens: number }

/** Parts of a span that are no longer than `tokensMax`, cut by the best kind of place that will do. */
function createSplitter(text: string, tokensMax: number) {
  const measure = ({ start, end }: Span): Measured => ({
    start,
    end,
    tokens: measureText(text.slice(start, end)),
  })

  function split(span: Span, level: number): Measured[] {
    const whole = measure(span)
    if (whole.tokens <= tokensMax) return [whole]
    const cut = cuts[level]
    if (cut === undefined) return cutHard(whole)
    const pieces: Measured[] = []
    const add = (piece: Measured) => {
      const last = pieces.at(-1)
      if (last === undefined || last.tokens + piece.tokens > tokensMax) pieces.push(piece)
      else pieces.splice(-1, 1, joined(last, piece))
    }
    for (const part of cutAt(span, cut(text, span)).map(measure)) {
      if (part.tokens <= tokensMax) {
        add(part)
        continue
      }
      const isLonely = (pieces.at(-1)?.tokens ?? tokensMax) < tokensMax * lonelyShare
      const start = isLonely ? (pieces.pop()?.start ?? part.start) : part.start
      for (const piece of split({ start, end: part.end }, level + 1)) add(piece)
    }
    return pieces
  }

  function cutHard(span: Measured): Measured[] {
    const pieces: Measured[] = []
    let rest = span
    while (rest.tokens > tokensMax) {
      let chars = Math.floor(((rest.end - rest.start) * tokensMax) / rest.tokens)
      let piece = measure({ start: rest.start, end: placeBehind(rest.start, chars) })
      while (piece.tokens > tokensMax && chars > 1) {
        chars = Math.floor(chars * 0.8)
        piece = measure({ start: rest.start, end: placeBehind(rest.start, chars) })
      }
      pieces.push(piece)
      rest = measure({ start: piece.end, end: rest.end })
    }
    return [...pieces, rest]
  }

  /** At least one character is taken. */
  const placeBehind = (start: number, chars: number) => {
    const place = wholeCharacter(text, start + Math.max(chars, 1))
    return place > start ? place : start + 2
  }
  return split
}

function joined(one: Measured, other: Measured): Measured {
  return { start: one.start, end: other.end, tokens: one.tokens + other.tokens }
}

function trim(text: string, { start, end }: Span): Span {
  const part = text.slice(start, end)
  const begin = start + part.length - part.trimStart().length
  return { start: begin, end: Math.max(begin, start + part.trimEnd().length) }
}

/** More characters than a token of any language has, so that little of a long passage is looked at. */
const charsPerTokenMax = 16

/** Where a passage begins that has the end of the one before it; sentences if they fit, else words. */
function overlapStart(
  text: string,
  { before, body, overlapTokens }: { before: Span; body: Span; overlapTokens: number },
): number {
  if (overlapTokens === 0 || /^#{1,6} /.test(text.slice(body.start, body.start + 8))) {
    return body.start
  }
  const start = Math.max(before.start, before.end - overlapTokens * charsPerTokenMax)
  const span = { start, end: before.end }
  for (const cut of cuts.slice(-2)) {
    const places = [...cut(text, span)].filter((place) => place > start && place < before.end)
    const found = places.find((place) => fits(text.slice(place, body.start), overlapTokens))
    if (found !== undefined) return trim(text, { start: found, end: before.end }).start
  }
  return body.start
}

function fits(text: string, tokensMax: number): boolean {
  return measureText(text) <= tokensMax
}
