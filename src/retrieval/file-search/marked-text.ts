/** A part of a text: text to show, or the numbers of a marker. */
export type TextPart =
  | { readonly text: string }
  /** `index` is the position of the marker in the shown text. */
  | { readonly numbers: readonly number[]; readonly index: number }

/** A text that is being streamed. */
export type MarkedText = {
  /** Returns the parts that are complete. */
  push(delta: string): TextPart[]
  /** Returns withheld text that was no marker. */
  end(): TextPart[]
  /** Converts a position in the original text to the shown text. */
  shownIndex(originalIndex: number): number
}

/** Limits of a marker: spaces before it, characters of its numbers, characters of a note. */
const spacesMax = 4
const numbersCharsMax = 32
const noteCharsMax = 48

const numbers = `[\\d\\s,;，、]{1,${numbersCharsMax}}`
/** Some models add a position in the passage: 【1†L3-L7】. */
const note = `[†:|][^【】\\n]{0,${noteCharsMax}}`
const marker = new RegExp(` {0,${spacesMax}}【(${numbers})(?:${note})?】`, 'gu')
/** The beginning of a marker at the end of the text. */
const partialMarker = new RegExp(` {0,${spacesMax}}(?:【(?:${numbers}(?:${note})?)?)?$`, 'u')
const partialCharsMax = spacesMax + numbersCharsMax + noteCharsMax + 2

/**
 * Removes markers and the spaces before them from a streamed text. Withholds only text that may begin
 * a marker. A marker without known numbers stays in the text. The result is independent of how the
 * text is divided into deltas.
 */
export function createMarkedText(isKnown: (number: number) => boolean): MarkedText {
  let withheld = ''
  /** The spaces before the last marker, restored if a word follows it. */
  let removedSpaces = ''
  let originalChars = 0
  let shownChars = 0
  /** The positions after each marker in both texts. */
  const offsets: { original: number; shown: number }[] = []

  const show = (text: string): TextPart[] => {
    if (text === '') return []
    const spaces = /^[\p{L}\p{N}]/u.test(text) ? removedSpaces : ''
    const offset = offsets.at(-1)
    if (offset !== undefined) offset.shown += spaces.length
    removedSpaces = ''
    originalChars += text.length
    shownChars += spaces.length + text.length
    return [{ text: spaces + text }]
  }
  const remove = (match: string, known: readonly number[]): TextPart => {
    originalChars += match.length
    removedSpaces ||= match.slice(0, match.indexOf('【'))
    offsets.push({ original: originalChars, shown: shownChars })
    return { numbers: known, index: shownChars }
  }
  return {
    push(delta) {
      const text = withheld + delta
      const parts: TextPart[] = []
      let end = 0
      for (const match of text.matchAll(marker)) {
        const known = parseNumbers(match[1] ?? '').filter(isKnown)
        if (known.length === 0) continue
        parts.push(...show(text.slice(end, match.index)), remove(match[0], known))
        end = match.index + match[0].length
      }
      const rest = text.slice(end)
      withheld = partialMarker.exec(rest.slice(-partialCharsMax))?.[0] ?? ''
      return [...parts, ...show(rest.slice(0, rest.length - withheld.length))]
    },
    end: () => show(withheld),
    shownIndex(originalIndex) {
      const offset = offsets.findLast(({ original }) => original <= originalIndex)
      if (offset === undefined) return originalIndex
      return offset.shown + originalIndex - offset.original
    },
  }
}

/** Each number once. */
function parseNumbers(text: string): readonly number[] {
  const digits = text.split(/[\s,;，、]+/u).filter((part) => part !== '')
  return [...new Set(digits.map(Number))]
}
