import type { Citation, GenerationEvent } from '#inference/events.ts'
import { createMarkedText, type MarkedText, type TextPart } from './marked-text.ts'
import type { PassageRegistry } from './passages.ts'

/** Rewrites the events of one response, in order. */
export type Citer = (events: readonly GenerationEvent[]) => readonly GenerationEvent[]

/** Further citations of a response are dropped. */
const citationsMax = 1_024

type CitedText = MarkedText & {
  readonly block: number
  /** Position and number of each citation, to drop duplicates. */
  readonly cited: Set<string>
}

/**
 * Turns the markers that a model writes into citations after the text they belong to. Responses
 * without passages pass unchanged.
 */
export function createCiter(registry: Pick<PassageRegistry, 'find' | 'all'>): Citer {
  let current: CitedText | null = null
  let citationsLeft = citationsMax

  const cite = ({ cited }: CitedText, number: number, index: number): Citation[] => {
    const passage = registry.find(number)
    const key = `${index} ${number}`
    if (passage === undefined || citationsLeft === 0 || cited.has(key)) return []
    citationsLeft--
    cited.add(key)
    const { fileId, filename, text } = passage
    return [{ kind: 'file', fileId, filename, index, quoted: { number, text } }]
  }
  const eventsOf = (text: CitedText, part: TextPart): GenerationEvent[] => {
    const { block } = text
    if ('text' in part) return [{ type: 'text-delta', block, text: part.text }]
    const { numbers, index } = part
    return numbers
      .flatMap((number) => cite(text, number, index))
      .map((citation) => ({ type: 'citation', block, citation }))
  }
  const rewrite = (event: GenerationEvent): readonly GenerationEvent[] => {
    if (event.type === 'text-start') {
      const isCited = event.form === 'answer' && registry.all().length > 0
      current = isCited ? openText(event.block, registry) : null
    }
    if (current === null) return [event]
    const text = current
    switch (event.type) {
      case 'text-delta': {
        const parts = text.push(event.text)
        const [only] = parts
        // An unchanged delta keeps its log probabilities.
        const isUnchanged =
          parts.length === 1 && only !== undefined && 'text' in only && only.text === event.text
        return isUnchanged ? [event] : parts.flatMap((part) => eventsOf(text, part))
      }
      case 'citation':
        return [{ ...event, citation: moveCitation(event.citation, text) }]
      case 'text-end':
        current = null
        return [...text.end().flatMap((part) => eventsOf(text, part)), event]
      default:
        return [event]
    }
  }
  return (events) => (registry.all().length === 0 ? events : events.flatMap(rewrite))
}

function openText(block: number, registry: Pick<PassageRegistry, 'find'>): CitedText {
  const text = createMarkedText((number) => registry.find(number) !== undefined)
  return { ...text, block, cited: new Set() }
}

/** Citations of the upstream have positions in the original text. */
function moveCitation(citation: Citation, text: MarkedText): Citation {
  if (citation.kind === 'file') return { ...citation, index: text.shownIndex(citation.index) }
  return {
    ...citation,
    startIndex: text.shownIndex(citation.startIndex),
    endIndex: text.shownIndex(citation.endIndex),
  }
}
