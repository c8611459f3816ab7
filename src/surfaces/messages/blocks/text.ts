import type { BlockEvent, Citation } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import type { BlockContext, BlockSink, EventOf, OpenBlock } from './block.ts'

/** Text or a refusal. Without text there is no block, since clients reject empty blocks. */
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
    const head = this.#endCitedBlock(sink) + openOnce(sink)
    this.#hasText = true
    return head + sink.delta('text_delta', text)
  }

  #cite(sink: BlockSink, cited: Citation): string {
    const citation = renderCitation(cited)
    if (citation === null) return ''
    this.#isCited ||= cited.kind === 'file' && this.#hasText
    return openOnce(sink) + sink.cite(citation)
  }

  /** A citation applies to a whole block, so the text after it needs a new one. */
  #endCitedBlock(sink: BlockSink): string {
    if (!this.#hasText || !this.#isCited) return ''
    this.#isCited = false
    return sink.stop()
  }
}

function openOnce(sink: BlockSink): string {
  return sink.isOpen() ? '' : sink.start({ type: 'text', text: '', citations: null })
}

/**
 * Null if the format cannot represent the citation. Files can only be cited as search results. The
 * text of a web page is unknown, so it is not quoted.
 */
function renderCitation(citation: Citation): object | null {
  if (citation.kind === 'file') return renderPassage(citation)
  const { url, title } = citation
  return { type: 'web_search_result_location', url, title, cited_text: '', encrypted_index: '' }
}

/** A passage is a search result with one block. Clients show its source as a link. */
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
