import type { BlockEvent, Citation } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import type { BlockContext, BlockSink, EventOf, OpenBlock } from './block.ts'

/** Text of an answer or a refusal. One without any text is no block: clients refuse empty ones. */
export class TextBlock implements OpenBlock {
  #hasText = false
  #isCited = false

  constructor(start: EventOf<'text-start'>, { tally }: BlockContext) {
    if (start.form === 'refusal') tally.hasRefusal = true
  }

  start(): string {
    return ''
  }

  push(sink: BlockSink, event: BlockEvent): string {
    if (event.type === 'text-delta') return this.#addText(sink, event.text)
    assert(event.type === 'citation', `${event.type} in a text`)
    return this.#cite(sink, event.citation)
  }

  end(sink: BlockSink): string {
    return sink.stop()
  }

  #addText(sink: BlockSink, text: string): string {
    if (text === '') return ''
    const head = this.#divided(sink) + opened(sink)
    this.#hasText = true
    return head + sink.delta('text_delta', text)
  }

  #cite(sink: BlockSink, cited: Citation): string {
    const citation = renderCitation(cited)
    if (citation === null) return ''
    this.#isCited ||= cited.kind === 'file' && this.#hasText
    return opened(sink) + sink.cite(citation)
  }

  /** What is cited is all of a block, so the text behind a passage begins one of its own. */
  #divided(sink: BlockSink): string {
    if (!this.#hasText || !this.#isCited) return ''
    this.#isCited = false
    return sink.stop()
  }
}

function opened(sink: BlockSink): string {
  return sink.isOpen() ? '' : sink.start({ type: 'text', text: '', citations: null })
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
