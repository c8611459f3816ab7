/** A part of a text: from `start` to before `end`. */
export type Span = { readonly start: number; readonly end: number }

/** Places where a part of a text may be cut, the best kind first. */
export type Cut = (text: string, span: Span) => Iterable<number>

export const cuts: readonly Cut[] = [
  matches(/^#{1,6} /gm),
  matches(/(?<=\n)\n+/g),
  matches(/\n/g),
  sentences,
  matches(/\s/g),
]

/** Parts that end before a heading, and behind a line, a paragraph or a space. */
function matches(pattern: RegExp): Cut {
  return function* (text, { start, end }) {
    const part = text.slice(start, end)
    for (const found of part.matchAll(pattern)) {
      const isHeading = found[0].startsWith('#')
      yield start + found.index + (isHeading ? 0 : found[0].length)
    }
  }
}

const segmenter = new Intl.Segmenter('und', { granularity: 'sentence' })

function* sentences(text: string, { start, end }: Span): Iterable<number> {
  for (const { index } of segmenter.segment(text.slice(start, end))) yield start + index
}

/** The parts between the cuts; none of them is empty. */
export function cutAt(span: Span, places: Iterable<number>): Span[] {
  const parts: Span[] = []
  let start = span.start
  for (const place of places) {
    if (place <= start || place >= span.end) continue
    parts.push({ start, end: place })
    start = place
  }
  parts.push({ start, end: span.end })
  return parts
}

/** A place that parts no character, at this one or before it. */
export function wholeCharacter(text: string, place: number): number {
  const code = text.charCodeAt(place)
  return code >= 0xdc00 && code <= 0xdfff ? place - 1 : place
}

/** What is looked at in one go, so that a long text holds nobody up for long. */
const windowChars = 65_536

/** The windows of a text; they end, as far as there is such a place, between paragraphs. */
export function* windowsOf(text: string): Iterable<Span> {
  for (let start = 0; start < text.length; ) {
    const end = windowEnd(text, start)
    yield { start, end }
    start = end
  }
}

function windowEnd(text: string, start: number): number {
  const end = start + windowChars
  if (end >= text.length) return text.length
  for (const sign of ['\n\n', '\n', '. ', ' ']) {
    const place = text.lastIndexOf(sign, end - sign.length)
    if (place > start + windowChars / 2) return place + sign.length
  }
  return wholeCharacter(text, end)
}
