/** Told what the text means, in order. */
export type ThinkTagReader = { reasoning(text: string): void; text(text: string): void }

/**
 * Splits content that begins with `<think>…</think>` into reasoning and answer; the tags may be
 * divided over pieces. Only a tag at the very beginning counts, because an answer may speak of
 * tags. Whitespace around the tags is theirs.
 */
export type ThinkTagSplitter = {
  push(piece: string, reader: ThinkTagReader): void
  /** The content has ended: what might have become a tag is text after all. */
  end(reader: ThinkTagReader): void
}

const openTag = '<think>'
const closeTag = '</think>'
/** Whitespace is held up to here while a tag may still come. */
const heldCharsMax = 1_024

export function createThinkTagSplitter(): ThinkTagSplitter {
  let place: 'before' | 'opened' | 'inside' | 'behind' | 'answer' = 'before'
  let held = ''

  const step = (reader: ThinkTagReader): boolean => {
    switch (place) {
      case 'before': {
        const start = held.trimStart()
        if (start.startsWith(openTag)) {
          held = start.slice(openTag.length)
          place = 'opened'
          return true
        }
        if (openTag.startsWith(start) && held.length <= heldCharsMax) return false
        place = 'answer'
        return true
      }
      case 'opened':
        held = held.trimStart()
        if (held !== '') place = 'inside'
        return held !== ''
      case 'inside': {
        const close = held.indexOf(closeTag)
        const safe = close === -1 ? held.length - tagStartChars(held) : close
        if (safe > 0) reader.reasoning(held.slice(0, safe))
        held = held.slice(close === -1 ? safe : close + closeTag.length)
        if (close !== -1) place = 'behind'
        return close !== -1
      }
      case 'behind':
        held = held.trimStart()
        if (held !== '') place = 'answer'
        return held !== ''
      case 'answer':
        if (held !== '') reader.text(held)
        held = ''
        return false
    }
  }

  return {
    push(piece, reader) {
      if (place === 'answer') return reader.text(piece)
      held += piece
      while (step(reader));
    },
    end(reader) {
      if (held !== '') reader[place === 'inside' ? 'reasoning' : 'text'](held)
      held = ''
    },
  }
}

/** How many characters at the end may be the start of the closing tag. */
function tagStartChars(text: string): number {
  for (let count = Math.min(closeTag.length - 1, text.length); count > 0; count--) {
    if (closeTag.startsWith(text.slice(-count))) return count
  }
  return 0
}
