/** Receives the text in order, sometimes an empty one. */
export type ThinkTagReader = { reasoning(text: string): void; text(text: string): void }

/**
 * Splits content that begins with `<think>…</think>` into reasoning and answer; a tag may be split
 * across pieces. Only a tag at the very beginning counts, because an answer may mention tags.
 * Whitespace around the tags is dropped.
 */
export type ThinkTagSplitter = {
  push(piece: string, reader: ThinkTagReader): void
  /** The content has ended: a partial tag is text. */
  end(reader: ThinkTagReader): void
}

const openTag = '<think>'
const closeTag = '</think>'
/** The most leading whitespace that is held while a tag may follow, in characters. */
const heldCharsMax = 1_024

export function createThinkTagSplitter(): ThinkTagSplitter {
  let position: 'before' | 'opened' | 'inside' | 'after' | 'answer' = 'before'
  let held = ''

  const step = (reader: ThinkTagReader): boolean => {
    switch (position) {
      case 'before': {
        const start = held.trimStart()
        if (start.startsWith(openTag)) {
          held = start.slice(openTag.length)
          position = 'opened'
          return true
        }
        if (openTag.startsWith(start) && held.length <= heldCharsMax) return false
        position = 'answer'
        return true
      }
      case 'opened':
        held = held.trimStart()
        if (held !== '') position = 'inside'
        return held !== ''
      case 'inside': {
        const close = held.indexOf(closeTag)
        const safe = close === -1 ? held.length - tagStartChars(held) : close
        reader.reasoning(held.slice(0, safe))
        held = held.slice(close === -1 ? safe : close + closeTag.length)
        if (close !== -1) position = 'after'
        return close !== -1
      }
      case 'after':
        held = held.trimStart()
        if (held !== '') position = 'answer'
        return held !== ''
      case 'answer':
        reader.text(held)
        held = ''
        return false
    }
  }

  return {
    push(piece, reader) {
      held += piece
      while (step(reader));
    },
    end(reader) {
      reader[position === 'inside' ? 'reasoning' : 'text'](held)
      held = ''
    },
  }
}

/** How many characters at the end may be the beginning of the closing tag. */
function tagStartChars(text: string): number {
  for (let count = Math.min(closeTag.length - 1, text.length); count > 0; count--) {
    if (closeTag.startsWith(text.slice(-count))) return count
  }
  return 0
}
