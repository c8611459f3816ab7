import type { Citation, TokenLogprob } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import { deltaHead } from '#surfaces/responses/frames.ts'
import type { EventOf, ItemContext, ItemStatus, OpenItem } from './item.ts'

export function openMessage(
  start: EventOf<'text-start'>,
  { frames, outputIndex }: ItemContext,
): OpenItem {
  const id = newId('msg_')
  const isRefusal = start.form === 'refusal'
  const place = { item_id: id, output_index: outputIndex, content_index: 0 }
  const deltaType = isRefusal ? 'response.refusal.delta' : 'response.output_text.delta'
  const head = deltaHead(deltaType, isRefusal ? place : { ...place, logprobs: [] })
  const annotations: Annotation[] = []
  const logprobs: object[] = []
  let text = ''

  const part = () =>
    isRefusal
      ? { type: 'refusal', refusal: text }
      : { type: 'output_text', text, annotations, logprobs }
  const withContent = (as: ItemStatus, content: readonly object[]) => ({
    id,
    type: 'message',
    status: as,
    role: 'assistant',
    content,
    ...(start.phase === undefined ? {} : { phase: start.phase }),
  })
  const item = (as: ItemStatus) => withContent(as, [part()])
  const cite = (citation: Citation) => {
    if (isTold(citation, annotations)) return ''
    const annotation = renderCitation(citation)
    annotations.push(annotation)
    return frames.frame('response.output_text.annotation.added', {
      ...place,
      annotation_index: annotations.length - 1,
      annotation,
    })
  }
  const addText = (event: EventOf<'text-delta'>) => {
    text += event.text
    if (event.logprobs === undefined || isRefusal) return frames.delta(head, event.text)
    const added = event.logprobs.map(renderLogprob)
    logprobs.push(...added)
    return frames.frame(deltaType, { ...place, delta: event.text, logprobs: added })
  }
  return {
    start: () =>
      frames.frame('response.output_item.added', {
        output_index: outputIndex,
        item: withContent('in_progress', []),
      }) + frames.frame('response.content_part.added', { ...place, part: part() }),
    push(event) {
      if (event.type === 'text-delta') return addText(event)
      assert(event.type === 'citation', `${event.type} in a message`)
      return cite(event.citation)
    },
    end(event) {
      assert(event.type === 'text-end', `${event.type} ends a message`)
      const status = event.complete ? 'completed' : 'incomplete'
      const done = isRefusal
        ? frames.frame('response.refusal.done', { ...place, refusal: text })
        : frames.frame('response.output_text.done', { ...place, text, logprobs })
      return (
        done +
        frames.frame('response.content_part.done', { ...place, part: part() }) +
        frames.frame('response.output_item.done', { output_index: outputIndex, item: item(status) })
      )
    },
    item,
  }
}

type Annotation = { readonly type: string; readonly [field: string]: unknown }

/** Two passages of one file are one source where they are cited together. */
function isTold(citation: Citation, annotations: readonly Annotation[]): boolean {
  if (citation.kind !== 'file') return false
  const { fileId, index } = citation
  return annotations.some((told) => told['file_id'] === fileId && told['index'] === index)
}

function renderCitation(citation: Citation): Annotation {
  if (citation.kind === 'file') {
    const { fileId, filename, index } = citation
    return { type: 'file_citation', file_id: fileId, filename, index }
  }
  const { url, title, startIndex, endIndex } = citation
  return { type: 'url_citation', url, title, start_index: startIndex, end_index: endIndex }
}

function renderLogprob(logprob: TokenLogprob): object {
  const { token, bytes, top } = logprob
  return { token, logprob: logprob.logprob, bytes, top_logprobs: top }
}
