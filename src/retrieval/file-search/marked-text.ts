/** What comes of a text with marks: text to show, and the numbers that a mark stood for. */
export type Piece =
  | { readonly text: string }
  /** `index`: where in the shown text it stood. */
  | { readonly numbers: readonly number[]; readonly index: number }

/** One text while it is written. */
export type MarkedText = {
  /** What can be shown by now. */
  push(written: string): Piece[]
  /** What was held back and is no mark. */
  end(): Piece[]
  /** Where a place of the text as it was written is in the text as it is shown. */
  shownIndex(writtenIndex: number): number
}

/** A mark with more than these is none: spaces before it, characters of its numbers, and of a note. */
const spacesMax = 4
const numbersCharsMax = 32
const noteCharsMax = 48

const numbers = `[\\d\\s,;，、]{1,${numbersCharsMax}}`
/** Some models add where in the passage: 【1†L3-L7】. */
const note = `[†:|][^【】\\n]{0,${noteCharsMax}}`
const mark = new RegExp(` {0,${spacesMax}}【(${numbers})(?:${note})?】`, 'gu')
/** The end of a text that may yet become a mark. */
const begunMark = new RegExp(` {0,${spacesMax}}(?:【(?:${numbers}(?:${note})?)?)?$`, 'u')
const begunCharsMax = spacesMax + numbersCharsMax + noteCharsMax + 2

/**
 * Takes the marks out of a text, together with the spaces before them, since readers want neither.
 * Only what may be the beginning of a mark is held back; a mark of nothing but unknown numbers is
 * text like any other. However the text is divided, the same comes of it.
 */
export function createMarkedText(isKnown: (number: number) => boolean): MarkedText {
  let held = ''
  /** The spaces of the last mark, which are missing where a word follows it. */
  let owed = ''
  let writtenChars = 0
  let shownChars = 0
  /** Where the two texts run side by side again after a mark. */
  const joints: { written: number; shown: number }[] = []

  const give = (text: string): Piece[] => {
    if (text === '') return []
    const missing = /^[\p{L}\p{N}]/u.test(text) ? owed : ''
    const joint = joints.at(-1)
    if (joint !== undefined) joint.shown += missing.length
    owed = ''
    writtenChars += text.length
    shownChars += missing.length + text.length
    return [{ text: missing + text }]
  }
  const takeOut = (found: string, known: readonly number[]): Piece => {
    writtenChars += found.length
    owed ||= found.slice(0, found.indexOf('【'))
    joints.push({ written: writtenChars, shown: shownChars })
    return { numbers: known, index: shownChars }
  }
  return {
    push(written) {
      const text = held + written
      const pieces: Piece[] = []
      let done = 0
      for (const match of text.matchAll(mark)) {
        const known = readNumbers(match[1] ?? '').filter(isKnown)
        if (known.length === 0) continue
        pieces.push(...give(text.slice(done, match.index)), takeOut(match[0], known))
        done = match.index + match[0].length
      }
      const rest = text.slice(done)
      held = begunMark.exec(rest.slice(-begunCharsMax))?.[0] ?? ''
      return [...pieces, ...give(rest.slice(0, rest.length - held.length))]
    },
    end: () => give(held),
    shownIndex(writtenIndex) {
      const joint = joints.findLast(({ written }) => written <= writtenIndex)
      return joint === undefined ? writtenIndex : joint.shown + writtenIndex - joint.written
    },
  }
}

/** Each once. */
function readNumbers(text: string): readonly number[] {
  const words = text.split(/[\s,;，、]+/u).filter((word) => word !== '')
  return [...new Set(words.map(Number))]
}
