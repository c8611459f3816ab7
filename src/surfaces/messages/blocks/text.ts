import type { Citation } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import type { BlockContext, EventOf, OpenBlock } from './block.ts'

/** Text of an answer or a refusal. One without any text is no block: clients refuse empty ones. */
export function openText(start: EventOf<'text-start'>, context: BlockContext): OpenBlock {
  if (start.form === 'refusal') context.tally.hasRefusal = true
  const { sink } = context
  const opened = () =>
    sink().isOpen() ? '' : sink().start({ type: 'text', text: '', citations: null })
  return {
    start: () => '',
    push(event) {
      if (event.type === 'text-delta') {
        return event.text === '' ? '' : opened() + sink().delta('text_delta', event.text)
      }
      assert(event.type === 'citation', `${event.type} in a text`)
      const citation = renderCitation(event.citation)
      return citation === null ? '' : opened() + sink().cite(citation)
    },
    end: () => sink().stop(),
  }
}

/**
 * A source as the format has it, or null: it knows files only as documents of the request. What the
 * source says is not known here, and so is not quoted.
 */
function renderCitation(citation: Citation): object | null {
  if (citation.kind === 'file') return null
  const { url, title } = citation
  return { type: 'web_search_result_location', url, title, cited_text: '', encrypted_index: '' }
}
