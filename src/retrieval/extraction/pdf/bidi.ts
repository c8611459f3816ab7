/** A glyph of a line and what it means; several characters for a ligature. */
export type Glyph = {
  readonly text: string
  /** Its advance, in points. */
  readonly left: number
  readonly right: number
  /** The middle of its ink. */
  readonly middle: number
  readonly height: number
}

/** Gap of two glyphs, in line heights, that is a space. */
const spaceGap = 0.15
/** Brackets of a line that are tried in both directions. */
const bracketsMax = 8

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/
const letter = /\p{L}/u
const mark = /^\p{Mn}+$/u
const digit = /^\p{Nd}/u
const separator = /^[.,:/+-]$/

export function isRightToLeft(text: string): boolean {
  return rightToLeft.test(text)
}

/**
 * The text of a line in reading order: the inverse of the bidirectional algorithm, which placed its
 * glyphs. Several texts may look the same; the usual one is taken.
 */
export function logicalOrder(glyphs: readonly Glyph[]): string {
  const line = visualLine(glyphs)
  const letters = line.filter((text) => letter.test(text))
  const isBaseRtl = letters.filter(isRightToLeft).length * 2 >= letters.length
  const runs = runsOf(line, isBaseRtl).map((run) =>
    (run.isRtl ? run.texts.toReversed() : run.texts).join(''),
  )
  return restoreBrackets((isBaseRtl ? runs.toReversed() : runs).join(''))
}

/** The texts of a line from left to right, with spaces; accents follow their letters. */
function visualLine(glyphs: readonly Glyph[]): string[] {
  const bases = glyphs
    .filter(({ text }) => !mark.test(text) && text.trim() !== '')
    .map((glyph) => ({ ...glyph, text: orderLigature(glyph.text) }))
    .toSorted((one, other) => one.left - other.left)
  for (const accent of glyphs.filter(({ text }) => mark.test(text))) {
    const base = nearest(bases, accent.middle)
    if (base !== undefined) base.text += Array.from(accent.text).toReversed().join('')
  }
  return bases.flatMap(({ text, left, height }, at) => {
    const previous = bases[at - 1]
    const isApart = previous !== undefined && left - previous.right > spaceGap * height
    return isApart ? [' ', text] : [text]
  })
}

type Base = { text: string; readonly left: number; readonly right: number }

/** By binary search, since lines of hostile files are long. */
function nearest(bases: readonly Base[], middle: number): Base | undefined {
  let low = 0
  let high = bases.length
  while (low < high) {
    const at = (low + high) >> 1
    if ((bases[at]?.left ?? 0) <= middle) low = at + 1
    else high = at
  }
  return bases[Math.max(low - 1, 0)]
}

/** Of two letters in one glyph, these are reversed; others PDFium took apart itself. */
const alefThenLam = /^[\u0622\u0623\u0625\u0627\u0671]\u0644$/

/** PDFium reverses the characters of a glyph; accents follow their letter. */
function orderLigature(text: string): string {
  const [first, last] = [/^\p{Mn}/u.test(text), /\p{Mn}$/u.test(text)]
  const isReversed = first === last ? text.length > 2 || alefThenLam.test(text) : first
  return isReversed && isRightToLeft(text) ? Array.from(text).toReversed().join('') : text
}

type Run = { readonly isRtl: boolean; readonly texts: string[] }

/** Parts of a line with one direction. Spaces and signs belong to their neighbours, else to the base. */
function runsOf(line: readonly string[], isBaseRtl: boolean): Run[] {
  const runs: Run[] = []
  const kinds = line.map(kindOf)
  /** The nearest letter or number on each side. */
  const before: Kind[] = []
  for (const [at] of kinds.entries()) before.push(strongOr(kinds[at - 1], before[at - 1]))
  const after: Kind[] = []
  for (let at = kinds.length - 1; at >= 0; at--) after[at] = strongOr(kinds[at + 1], after[at + 1])
  for (const [at, text] of line.entries()) {
    const sides = [before[at], after[at]] as const
    const isInNumber =
      kinds[at - 1] === 'number' && kinds[at + 1] === 'number' && separator.test(text)
    const isRtl = isInNumber ? false : isRtlAt(kinds[at] ?? 'neutral', sides, isBaseRtl)
    const isNumber = isInNumber || kinds[at] === 'number'
    const run = runs.at(-1)
    // A number after a word of the base direction is a run of its own.
    const isJoined = run !== undefined && run.isRtl === isRtl && !(isNumber && isRtl)
    if (isJoined) run.texts.push(text)
    else runs.push({ isRtl, texts: [text] })
  }
  return runs
}

type Kind = 'rtl' | 'ltr' | 'number' | 'neutral'

function kindOf(text: string): Kind {
  if (digit.test(text)) return 'number'
  if (!letter.test(text)) return 'neutral'
  return isRightToLeft(text) ? 'rtl' : 'ltr'
}

function strongOr(kind: Kind = 'neutral', further: Kind = 'neutral'): Kind {
  return kind === 'neutral' ? further : kind
}

function isRtlAt(kind: Kind, [before, after]: readonly (Kind | undefined)[], isBaseRtl: boolean) {
  if (kind === 'number') return false
  if (kind !== 'neutral') return kind === 'rtl'
  if (isBaseRtl) return !(before === 'ltr' && (after === 'ltr' || after === 'number'))
  return before === 'rtl' && after === 'rtl'
}

const brackets = /[()[\]{}«»]/g
const mirrored: Readonly<Record<string, string>> = {
  '(': ')',
  ')': '(',
  '[': ']',
  ']': '[',
  '{': '}',
  '}': '{',
  '«': '»',
  '»': '«',
}

/**
 * Glyphs of brackets in right-to-left text are mirrored, and writers disagree about what they mean.
 * Turns the fewest that let each pair of a line enclose something.
 */
function restoreBrackets(line: string): string {
  const found = line.match(brackets) ?? []
  if (isNested(found) || found.length > bracketsMax) return line
  const turned = Array.from({ length: 2 ** found.length }, (_, mask) => mask)
    .toSorted((one, other) => bitsOf(one) - bitsOf(other))
    .map((mask) => found.map((sign, at) => ((mask >> at) & 1 ? (mirrored[sign] ?? sign) : sign)))
    .find(isNested)
  let next = 0
  return turned === undefined ? line : line.replace(brackets, (sign) => turned[next++] ?? sign)
}

function bitsOf(mask: number): number {
  return mask === 0 ? 0 : (mask & 1) + bitsOf(mask >> 1)
}

function isNested(signs: readonly string[]): boolean {
  const open: string[] = []
  for (const sign of signs) {
    if ('([{«'.includes(sign)) open.push(sign)
    else if (open.pop() !== mirrored[sign]) return false
  }
  return open.length === 0
}
