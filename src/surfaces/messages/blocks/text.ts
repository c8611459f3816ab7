import type { Citation } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import type { BlockContext, EventOf, OpenBlock } from './block.ts'

/** Text of an answer or a refusal. One without any text is no block: clients refuse empty ones. */
export function openText(start: EventOf<'text-start'>, context: BlockContext): OpenBlock {
  if (start.form === 'refusal') context.tally.hasRefusal = true
  const { sink } = context
  let hasText = false
  let isCited = false
  const opened = () =>
    sink().isOpen() ? '' : sink().start({ type: 'text', text: '', citations: null })
  /** What is cited is all of a block, so the text behind a passage begins one of its own. */
  const divided = () => {
    if (!hasText || !isCited) return ''
    isCited = false
    return sink().stop()
  }
  return {
    start: () => '',
    push(event) {
      if (event.type === 'text-delta') {
        const { text } = event
        if (text === '') return ''
        const head = divided() + opened()
        hasText = true
        return head + sink().delta('text_delta', text)
      }
      assert(event.type === 'citation', `${event.type} in a text`)
      const citation = renderCitation(event.citation)
      if (citation === null) return ''
      isCited ||= event.citation.kind === 'file' && hasText
      return opened() + sink().cite(citation)
    },
    end: () => sink().stop(),
  }
}

/**
 * A source as the format has it, or null: it knows files only as documents of the request, but what
 * was found in them as results of a search. What a web page says is not known here, and so is not
 * quoted.
 */
function renderCitation(citation: Citation): object | null {
  if (citation.kind === 'file') return renderPassage(citation)
  const { url, title } = citation
  return { type: 'web_search_result_location', url, title, cited_text: '', encrypted_index: '' }
}

/** A passage is a search result of one block. Clients take its source for an address. */
function renderPassage({
  fileId,
  filename,
  quoted,
}: Extract<Citation, { kind: 'file' }>): object | null {
  if (quoted === undefined) return null
  return {
    type: 'search_result_location',
    cited_text: quoted.text,
    search_result_index: quoted.number - 1,
    source: `/v1/files/${fileId}`,
    title: filename,
    start_block_index: 0,
    end_block_index: 1,
  }
}
