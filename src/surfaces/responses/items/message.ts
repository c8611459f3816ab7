import type { BlockEvent, Citation, TokenLogprob } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import type { StoredItem } from '#responses/response.ts'
import { deltaHead, type Frames } from '#surfaces/responses/frames.ts'
import type { EventOf, ItemContext, ItemStatus, OpenItem } from './item.ts'

export class MessageItem implements OpenItem {
  readonly #frames: Frames
  readonly #id = newId('msg_')
  readonly #phase: string | undefined
  readonly #isRefusal: boolean
  readonly #outputIndex: number
  readonly #deltaType: string
  readonly #head: string
  readonly #annotations: Annotation[] = []
  readonly #logprobs: object[] = []
  #text = ''
  #hasPart = false

  constructor(start: EventOf<'text-start'>, { frames, outputIndex }: ItemContext) {
    this.#frames = frames
    this.#phase = start.phase
    this.#isRefusal = start.form === 'refusal'
    this.#outputIndex = outputIndex
    this.#deltaType = this.#isRefusal ? 'response.refusal.delta' : 'response.output_text.delta'
    this.#head = frames.isSilent ? '' : this.#deltaHead()
  }

  start(): string {
    this.#hasPart = true
    if (this.#frames.isSilent) return ''
    return this.#frames.frame('response.content_part.added', {
      ...this.#partFields(),
      part: this.#part(),
    })
  }

  push(event: BlockEvent): string {
    if (event.type === 'text-delta') return this.#addText(event)
    assert(event.type === 'citation', `${event.type} in a message`)
    return this.#cite(event.citation)
  }

  end(event: BlockEvent): string {
    assert(event.type === 'text-end', `${event.type} ends a message`)
    if (this.#frames.isSilent) return ''
    const partFields = this.#partFields()
    const done = this.#isRefusal
      ? this.#frames.frame('response.refusal.done', { ...partFields, refusal: this.#text })
      : this.#frames.frame('response.output_text.done', { ...partFields, ...this.#textFields() })
    const part = this.#part()
    return done + this.#frames.frame('response.content_part.done', { ...partFields, part })
  }

  item(status: ItemStatus): StoredItem {
    const content = this.#hasPart ? [this.#part()] : []
    const phase = this.#phase === undefined ? {} : { phase: this.#phase }
    return { id: this.#id, type: 'message', status, role: 'assistant', content, ...phase }
  }

  #addText(event: EventOf<'text-delta'>): string {
    this.#text += event.text
    if (event.logprobs === undefined || this.#isRefusal)
      return this.#frames.delta(this.#head, event.text)
    const logprobs = event.logprobs.map(renderLogprob)
    this.#logprobs.push(...logprobs)
    return this.#frames.frame(this.#deltaType, {
      ...this.#partFields(),
      delta: event.text,
      logprobs,
    })
  }

  #cite(citation: Citation): string {
    if (isDuplicate(citation, this.#annotations)) return ''
    const annotation = renderCitation(citation)
    this.#annotations.push(annotation)
    return this.#frames.frame('response.output_text.annotation.added', {
      ...this.#partFields(),
      annotation_index: this.#annotations.length - 1,
      annotation,
    })
  }

  #deltaHead(): string {
    const fields = this.#partFields()
    return deltaHead(this.#deltaType, this.#isRefusal ? fields : { ...fields, logprobs: [] })
  }

  #partFields() {
    return { item_id: this.#id, output_index: this.#outputIndex, content_index: 0 }
  }

  #part(): object {
    if (this.#isRefusal) return { type: 'refusal', refusal: this.#text }
    const { text, logprobs } = this.#textFields()
    return { type: 'output_text', text, annotations: this.#annotations, logprobs }
  }

  #textFields() {
    return { text: this.#text, logprobs: this.#logprobs }
  }
}

type Annotation = { readonly type: string; readonly [field: string]: unknown }

/** Two passages of one file at one position are one citation. */
function isDuplicate(citation: Citation, annotations: readonly Annotation[]): boolean {
  if (citation.kind !== 'file') return false
  const { fileId, index } = citation
  return annotations.some((other) => other['file_id'] === fileId && other['index'] === index)
}

function renderCitation(citation: Citation): Annotation {
  if (citation.kind === 'file') {
    const { fileId, filename, index, container } = citation
    if (container !== undefined) {
      const range = { start_index: index, end_index: container.endIndex }
      const file = { file_id: fileId, filename, ...range }
      return { type: 'container_file_citation', container_id: container.id, ...file }
    }
    return { type: 'file_citation', file_id: fileId, filename, index }
  }
  const { url, title, startIndex, endIndex } = citation
  return { type: 'url_citation', url, title, start_index: startIndex, end_index: endIndex }
}

function renderLogprob(logprob: TokenLogprob): object {
  const { token, bytes, top } = logprob
  return { token, logprob: logprob.logprob, bytes, top_logprobs: top }
}
