import type { Citation, GenerationEvent } from '#inference/events.ts'
import { createMarkedText, type MarkedText, type Piece } from './marked-text.ts'
import type { PassageBook } from './passages.ts'

/** What the caller gets to see of the events of one response, in order. */
export type Citer = (events: readonly GenerationEvent[]) => readonly GenerationEvent[]

/** More citations of one response are not told. */
const citationsMax = 1_024

type CitedText = MarkedText & {
  readonly block: number
  /** Citations so far, so that none is told twice for one place. */
  readonly told: Set<string>
}

/**
 * Makes citations of the marks that a model writes. Each comes right behind the text that it belongs
 * to. A response that was given no passages passes as it is.
 */
export function createCiter(book: Pick<PassageBook, 'find' | 'all'>): Citer {
  let current: CitedText | null = null
  let citationsLeft = citationsMax

  const cite = ({ told }: CitedText, number: number, index: number): Citation[] => {
    const passage = book.find(number)
    const key = `${index} ${number}`
    if (passage === undefined || citationsLeft === 0 || told.has(key)) return []
    citationsLeft--
    told.add(key)
    const { fileId, filename, text } = passage
    return [{ kind: 'file', fileId, filename, index, quoted: { number, text } }]
  }
  const show = (cited: CitedText, piece: Piece): GenerationEvent[] => {
    const { block } = cited
    if ('text' in piece) return [{ type: 'text-delta', block, text: piece.text }]
    const { numbers, index } = piece
    return numbers
      .flatMap((number) => cite(cited, number, index))
      .map((citation) => ({ type: 'citation', block, citation }))
  }
  const translate = (event: GenerationEvent): readonly GenerationEvent[] => {
    if (event.type === 'text-start') {
      current =
        event.form === 'answer' && book.all().length > 0 ? openText(event.block, book) : null
    }
    if (current === null) return [event]
    const text = current
    switch (event.type) {
      case 'text-delta': {
        const pieces = text.push(event.text)
        const [only] = pieces
        // Untouched, it goes out as it came, with its log probabilities.
        const isSame = pieces.length === 1 && only !== undefined && 'text' in only
        return isSame && only.text === event.text
          ? [event]
          : pieces.flatMap((piece) => show(text, piece))
      }
      case 'citation':
        return [{ ...event, citation: moveCitation(event.citation, text) }]
      case 'text-end':
        current = null
        return [...text.end().flatMap((piece) => show(text, piece)), event]
      default:
        return [event]
    }
  }
  return (events) => (book.all().length === 0 ? events : events.flatMap(translate))
}

function openText(block: number, book: Pick<PassageBook, 'find'>): CitedText {
  const text = createMarkedText((number) => book.find(number) !== undefined)
  return { ...text, block, told: new Set() }
}

/** One of the upstream's own, which counts in the text as the model wrote it. */
function moveCitation(citation: Citation, text: MarkedText): Citation {
  if (citation.kind === 'file') return { ...citation, index: text.shownIndex(citation.index) }
  return {
    ...citation,
    startIndex: text.shownIndex(citation.startIndex),
    endIndex: text.shownIndex(citation.endIndex),
  }
}
