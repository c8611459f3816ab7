import type { ContentPart, ReasoningItem, RequestItem, Role } from '#inference/request.ts'
import { markFailure } from '#inference/tool-failure.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { assertNever } from '#lib/assert.ts'
import type { WireItem, WirePart } from './wire.ts'

/** `maker` names who will read the items, as `ReasoningItem.sealedBy` does. */
type ItemTarget = { quirks: UpstreamQuirks; maker: string }

/** One item of the history as the Responses format has it; none where it would say nothing. */
export function encodeItem(item: RequestItem, { quirks, maker }: ItemTarget): WireItem[] {
  switch (item.type) {
    case 'message':
      return [encodeMessage(item, quirks)]
    case 'tool-call': {
      const { callId, name, namespace } = item
      const head = { call_id: callId, name, ...(namespace === undefined ? {} : { namespace }) }
      return item.form === 'function'
        ? [{ type: 'function_call', ...head, arguments: item.arguments }]
        : [{ type: 'custom_tool_call', ...head, input: item.arguments }]
    }
    case 'tool-result': {
      const type = item.form === 'function' ? 'function_call_output' : 'custom_tool_call_output'
      const parts = markFailure(item)
      const output = textIfAlone(parts) ?? parts.map(inputPart)
      return [{ type, call_id: item.callId, output }]
    }
    case 'reasoning':
      return encodeReasoning(item, { quirks, maker })
    default:
      return assertNever(item)
  }
}

function encodeMessage(
  item: Extract<RequestItem, { type: 'message' }>,
  quirks: UpstreamQuirks,
): WireItem {
  const phase = item.phase === undefined ? {} : { phase: item.phase }
  if (item.role !== 'assistant') {
    const role = wireRole(item.role, quirks)
    return { type: 'message', role, content: item.parts.map(inputPart), ...phase }
  }
  // Servers that check assistant parts against OpenAI's types want an id with them (vLLM did), but
  // all take a string; a message of one text, which is nearly every one, goes as that.
  const text = textIfAlone(item.parts)
  return text === null
    ? {
        type: 'message',
        role: 'assistant',
        content: item.parts.map(outputPart),
        status: 'completed',
        ...phase,
      }
    : { type: 'message', role: 'assistant', content: text, ...phase }
}

function wireRole(role: Role, quirks: UpstreamQuirks): Role {
  return role === 'developer' && !quirks.developerRole ? 'system' : role
}

function textIfAlone(parts: readonly ContentPart[]): string | null {
  const [first, second] = parts
  if (first === undefined) return ''
  return first.type === 'text' && second === undefined ? first.text : null
}

function inputPart(part: ContentPart): WirePart {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'input_text', text: part.text }
    case 'image':
      // OpenAI's types say that `detail` is required, and vLLM checks it.
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'file':
      return {
        type: 'input_file',
        ...(part.data === null ? {} : { file_data: part.data }),
        ...(part.url === null ? {} : { file_url: part.url }),
        ...(part.filename === null ? {} : { filename: part.filename }),
      }
    default:
      return assertNever(part)
  }
}

function outputPart(part: ContentPart): WirePart {
  if (part.type === 'text') return { type: 'output_text', text: part.text, annotations: [] }
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.text }
  return inputPart(part)
}

/**
 * A sealed payload goes back without the raw text: it holds that already, and OpenAI refuses an item
 * that has `content`. Without it the text is all there is, and llama.cpp refuses an item that has
 * none, so what only a summary holds is given as the text too.
 */
function encodeReasoning(item: ReasoningItem, { quirks, maker }: ItemTarget): WireItem[] {
  const summary = item.summary.map((text) => ({ type: 'summary_text' as const, text }))
  if (isSealedFor(maker, item)) {
    return [{ type: 'reasoning', summary, encrypted_content: item.sealed }]
  }
  const text = item.text === '' ? item.summary.join('\n\n') : item.text
  if (text === '' || quirks.reasoningFields.length === 0) return []
  return [{ type: 'reasoning', summary, content: [{ type: 'reasoning_text', text }] }]
}

/** A payload that somebody else made would be refused, and the whole request with it. */
export function isSealedFor(
  maker: string,
  item: ReasoningItem,
): item is ReasoningItem & { sealed: string } {
  const { sealed = '', sealedBy = maker } = item
  return sealed !== '' && sealedBy === maker
}
