import type {
  Annotation,
  OutputItem,
  ResponseObject,
  ResponseStreamEvent,
} from '../../api/generated/types.ts'
import { type Answer, end, markFirst, partOf, type Source } from './answer.ts'
import type { JsonObject } from './surface.ts'

/** Applies an event of the Responses surface. */
export function applyResponseEvent(answer: Answer, event: ResponseStreamEvent): void {
  switch (event.type) {
    case 'response.created':
    case 'response.queued':
    case 'response.in_progress':
      answer.responseId = event.response.id
      return
    case 'response.output_item.added':
      markFirst(answer)
      addItem(answer, event.item)
      return
    case 'response.output_item.done':
      finishItem(answer, event.item)
      return
    case 'response.reasoning_summary_text.delta':
      markFirst(answer)
      reasoningOf(answer, event.item_id).text += event.delta
      return
    case 'response.reasoning_summary_part.added': {
      const part = reasoningOf(answer, event.item_id)
      if (part.text !== '') part.text += '\n\n'
      return
    }
    case 'response.output_text.delta':
      markFirst(answer)
      textPart(answer, event.item_id, event.content_index).text += event.delta
      return
    case 'response.output_text.annotation.added':
      textPart(answer, event.item_id, event.content_index).sources.push(sourceOf(event.annotation))
      return
    case 'response.refusal.delta':
      markFirst(answer)
      refusalOf(answer, event.item_id).text += event.delta
      return
    case 'response.function_call_arguments.delta':
    case 'response.custom_tool_call_input.delta':
    case 'response.mcp_call_arguments.delta':
    case 'response.code_interpreter_call_code.delta': {
      const part = answer.parts.find(({ key }) => key === event.item_id)
      if (part?.kind === 'call') part.args += event.delta
      if (part?.kind === 'step') part.detail += event.delta
      return
    }
    case 'response.image_generation_call.partial_image':
      imageOf(answer, `${event.item_id}:image`).base64 = event.partial_image_b64
      return
    case 'response.completed':
      finish(answer, event.response, 'completed')
      return
    case 'response.incomplete':
      finish(answer, event.response, 'incomplete')
      return
    case 'response.failed':
      finish(answer, event.response, 'failed')
      return
    case 'error':
      answer.error = { message: event.message, code: event.code }
      end(answer, 'failed')
      return
    default: {
      const { type, item_id } = event as { type: string; item_id?: string }
      const part = answer.parts.find(({ key }) => key === item_id)
      if (part?.kind === 'step') part.state = type.split('.').at(-1) ?? ''
    }
  }
}

const reasoningOf = (answer: Answer, key: string) =>
  partOf(answer, 'reasoning', key, () => ({ kind: 'reasoning', key, text: '' }))
const refusalOf = (answer: Answer, key: string) =>
  partOf(answer, 'refusal', `${key}:refusal`, () => ({
    kind: 'refusal',
    key: `${key}:refusal`,
    text: '',
  }))
const imageOf = (answer: Answer, key: string) =>
  partOf(answer, 'image', key, () => ({ kind: 'image', key, base64: '' }))

function textPart(answer: Answer, itemId: string, index: number) {
  const key = `${itemId}:${index}`
  return partOf(answer, 'text', key, () => ({ kind: 'text', key, text: '', sources: [] }))
}

function addItem(answer: Answer, item: OutputItem): void {
  if (item.type === 'message' || item.type === 'reasoning' || item.type === 'compaction') return
  const one = item as JsonObject & { id: string; type: string }
  const key = one.id
  if (item.type === 'function_call' || item.type === 'custom_tool_call') {
    const args = String(one['arguments'] ?? one['input'] ?? '')
    const callId = String(one['call_id'])
    partOf(answer, 'call', key, () => ({
      kind: 'call',
      key,
      callId,
      name: String(one['name']),
      args,
    }))
    return
  }
  const name = [one.type.replace(/_call$/, ''), one['server_label'], one['name']]
    .filter(Boolean)
    .join(' · ')
  partOf(answer, 'step', key, () => ({
    kind: 'step',
    key,
    name,
    detail: '',
    state: String(one['status'] ?? 'in_progress'),
  }))
}

function finishItem(answer: Answer, item: OutputItem): void {
  addItem(answer, item)
  const one = item as JsonObject & { id: string; type: string }
  const part = answer.parts.find(({ key }) => key === one.id)
  if (part?.kind === 'call') part.args = String(one['arguments'] ?? one['input'] ?? part.args)
  if (part?.kind === 'step') {
    part.state = String(one['status'] ?? 'completed')
    part.detail = stepDetail(one) || part.detail
  }
  if (typeof one['result'] === 'string' && one.type === 'image_generation_call') {
    imageOf(answer, `${one.id}:image`).base64 = one['result']
  }
  if (item.type !== 'message') return
  const contents = one['content'] as { type: string; text: string; annotations: Annotation[] }[]
  for (const [index, { type, text, annotations }] of contents.entries()) {
    if (type !== 'output_text') continue
    const shown = textPart(answer, one.id, index)
    shown.text = text
    shown.sources.splice(0, shown.sources.length, ...annotations.map(sourceOf))
  }
}

/** What a tool of the gateway or upstream did. */
function stepDetail(item: JsonObject): string {
  const lines: string[] = []
  if (Array.isArray(item['queries'])) lines.push(...item['queries'].map((query) => `“${query}”`))
  if (Array.isArray(item['results'])) {
    for (const result of item['results'] as { filename: string; score: number; text: string }[]) {
      lines.push(`${result.filename} (${result.score.toFixed(2)}): ${result.text}`)
    }
  }
  for (const field of ['arguments', 'code', 'output'] as const) {
    if (typeof item[field] === 'string' && item[field] !== '') lines.push(item[field])
  }
  if (item['error']) lines.push(JSON.stringify(item['error']))
  return lines.join('\n')
}

function sourceOf(annotation: Annotation): Source {
  if (annotation.type === 'url_citation') return { title: annotation.title, url: annotation.url }
  return { title: annotation.filename }
}

function finish(
  answer: Answer,
  response: ResponseObject,
  status: 'completed' | 'incomplete' | 'failed',
): void {
  answer.responseId = response.id
  const { usage, error, incomplete_details: incomplete } = response
  if (usage) {
    answer.usage = {
      input: usage.input_tokens,
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details.reasoning_tokens,
      cached: usage.input_tokens_details.cached_tokens,
    }
  }
  if (error) answer.error = { message: error.message, code: error.code }
  answer.why = incomplete?.reason ?? null
  end(answer, response.status === 'cancelled' ? 'stopped' : status)
}
