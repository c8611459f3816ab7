import type { MessageStreamEvent } from '../../api/generated/types.ts'
import { type Answer, end, markFirst, partOf, type Source } from './answer.ts'
import type { JsonObject } from './surface.ts'

/** Applies an event of the Messages surface. */
export function applyMessageEvent(answer: Answer, event: MessageStreamEvent): void {
  switch (event.type) {
    case 'message_start':
      answer.responseId = event.message.id
      addUsage(answer, event.message.usage as UsageFields)
      return
    case 'content_block_start':
      markFirst(answer)
      answer.blocks[event.index] = { ...(event.content_block as JsonObject) }
      showBlock(answer, event.index)
      return
    case 'content_block_delta':
      markFirst(answer)
      applyDelta(answer.blocks[event.index] ?? {}, event.delta as JsonObject)
      showBlock(answer, event.index)
      return
    case 'content_block_stop':
      completeInput(answer.blocks[event.index] ?? {})
      return
    case 'message_delta':
      addUsage(answer, event.usage as UsageFields)
      answer.why = event.delta.stop_reason
      return
    case 'message_stop':
      end(answer, answer.why === 'max_tokens' ? 'incomplete' : 'completed')
      return
    case 'error':
      answer.error = {
        message: event.error.message,
        code: event.error.details?.error_code ?? event.error.type,
      }
      end(answer, 'failed')
      return
    default:
  }
}

type UsageFields = {
  readonly input_tokens?: number | null
  readonly output_tokens: number
  readonly cache_read_input_tokens?: number | null
}

function addUsage(answer: Answer, usage: UsageFields): void {
  answer.usage = {
    input: usage.input_tokens ?? answer.usage?.input ?? 0,
    output: usage.output_tokens,
    reasoning: 0,
    cached: usage.cache_read_input_tokens ?? answer.usage?.cached ?? 0,
  }
}

/** The arguments of a tool call arrive as fragments of JSON. */
const fragments = new WeakMap<JsonObject, string>()

function applyDelta(block: JsonObject, delta: JsonObject): void {
  switch (delta['type']) {
    case 'text_delta':
      block['text'] = `${block['text'] ?? ''}${delta['text']}`
      return
    case 'thinking_delta':
      block['thinking'] = `${block['thinking'] ?? ''}${delta['thinking']}`
      return
    case 'signature_delta':
      block['signature'] = delta['signature']
      return
    case 'input_json_delta':
      fragments.set(block, `${fragments.get(block) ?? ''}${delta['partial_json']}`)
      return
    case 'citations_delta':
      block['citations'] = [...((block['citations'] as unknown[] | null) ?? []), delta['citation']]
      return
    default:
  }
}

function completeInput(block: JsonObject): void {
  const text = fragments.get(block)
  if (text === undefined || text === '') return
  try {
    block['input'] = JSON.parse(text)
  } catch {
    // The model was cut off in the middle of its arguments; the view shows them as they came.
  }
}

function showBlock(answer: Answer, index: number): void {
  const block = answer.blocks[index]
  if (block === undefined) return
  const key = String(index)
  switch (block['type']) {
    case 'text': {
      const part = partOf(answer, 'text', key, () => ({ kind: 'text', key, text: '', sources: [] }))
      part.text = String(block['text'] ?? '')
      const citations = (block['citations'] as JsonObject[] | null | undefined) ?? []
      part.sources.splice(0, part.sources.length, ...citations.map(sourceOf))
      return
    }
    case 'thinking': {
      const part = partOf(answer, 'reasoning', key, () => ({ kind: 'reasoning', key, text: '' }))
      part.text = String(block['thinking'] ?? '')
      return
    }
    case 'tool_use': {
      const part = partOf(answer, 'call', key, () => ({
        kind: 'call',
        key,
        callId: String(block['id']),
        name: String(block['name']),
        args: '',
      }))
      part.args = fragments.get(block) ?? JSON.stringify(block['input'] ?? {})
      return
    }
    case 'redacted_thinking':
      return
    default: {
      const name = [block['type'], block['name']].filter(Boolean).join(' · ')
      const part = partOf(answer, 'step', key, () => ({
        kind: 'step',
        key,
        name,
        detail: '',
        state: 'completed',
      }))
      part.detail = fragments.get(block) ?? JSON.stringify(block['content'] ?? block['input'] ?? '')
    }
  }
}

function sourceOf(citation: JsonObject): Source {
  const title = citation['document_title'] ?? citation['title'] ?? citation['source'] ?? ''
  return {
    title: String(title),
    ...(typeof citation['url'] === 'string' ? { url: citation['url'] } : {}),
    ...(typeof citation['cited_text'] === 'string' ? { quote: citation['cited_text'] } : {}),
  }
}
