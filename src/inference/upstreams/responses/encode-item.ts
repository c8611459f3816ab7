import { isMadeElsewhere, reasoningText } from '#inference/message-parts.ts'
import type { ContentPart, ReasoningItem, RequestItem } from '#inference/request.ts'
import { markFailure } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { assertNever } from '#lib/assert.ts'
import { type JsonObject, withoutNulls } from '#lib/json.ts'

/** `targetName`: the target that reads the items, as `ReasoningItem.sealedBy` names it. */
type ItemTarget = { quirks: UpstreamQuirks; targetName: string }

/** One item of the history in the Responses format; none where it would be empty. */
export function encodeItem(item: RequestItem, { quirks, targetName }: ItemTarget): JsonObject[] {
  switch (item.type) {
    case 'message':
      return [encodeMessage(item, quirks)]
    case 'tool-call': {
      const { callId, name, namespace, async: isAsync = false } = item
      const head = {
        call_id: callId,
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(isAsync && quirks.vendorFields ? { async: true } : {}),
      }
      return item.form === 'function'
        ? [{ type: 'function_call', ...head, arguments: item.arguments }]
        : [{ type: 'custom_tool_call', ...head, input: item.arguments }]
    }
    case 'tool-result': {
      const type = item.form === 'function' ? 'function_call_output' : 'custom_tool_call_output'
      const parts = markFailure(item)
      const output = soleText(parts) ?? parts.map(inputPart)
      return [{ type, call_id: item.callId, output }]
    }
    case 'reasoning':
      return encodeReasoning(item, { quirks, targetName })
    case 'native':
      return [item.value]
    default:
      return assertNever(item)
  }
}

function encodeMessage(
  item: Extract<RequestItem, { type: 'message' }>,
  quirks: UpstreamQuirks,
): JsonObject {
  const phase = item.phase === undefined ? {} : { phase: item.phase }
  if (item.role !== 'assistant') {
    const isReplaced = item.role === 'developer' && !quirks.developerRole
    const role = isReplaced ? 'system' : item.role
    return { type: 'message', role, content: item.parts.map(inputPart), ...phase }
  }
  // Servers that check assistant parts against OpenAI's types require an id (vLLM did), but all
  // accept a string, which carries nearly every message.
  const text = soleText(item.parts)
  const content = text ?? item.parts.map(outputPart)
  const status = text === null ? { status: 'completed' } : {}
  return { type: 'message', role: 'assistant', content, ...status, ...phase }
}

function soleText(parts: readonly ContentPart[]): string | null {
  const [first, second] = parts
  if (first === undefined) return ''
  return first.type === 'text' && second === undefined ? first.text : null
}

function inputPart(part: ContentPart): JsonObject {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'input_text', text: part.text }
    case 'image':
      // OpenAI's types require `detail`, and vLLM checks it.
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'file':
      return {
        type: 'input_file',
        ...withoutNulls({ file_data: part.data, file_url: part.url, filename: part.filename }),
      }
    default:
      return assertNever(part)
  }
}

function outputPart(part: ContentPart): JsonObject {
  if (part.type === 'text') return { type: 'output_text', text: part.text, annotations: [] }
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.text }
  return inputPart(part)
}

/**
 * A sealed payload is sent without the raw text, which it contains: OpenAI rejects an item that has
 * both. Without a payload, the text is required by llama.cpp, so the summary serves as the text
 * where there is no other.
 */
function encodeReasoning(item: ReasoningItem, { quirks, targetName }: ItemTarget): JsonObject[] {
  const summary = item.summary.map((text) => ({ type: 'summary_text', text }))
  if (isSealedFor(targetName, item)) {
    return [{ type: 'reasoning', summary, encrypted_content: item.sealed }]
  }
  const text = isMadeElsewhere(item, targetName) ? '' : reasoningText(item)
  if (text === '' || quirks.reasoningFields.length === 0) return []
  return [{ type: 'reasoning', summary, content: [{ type: 'reasoning_text', text }] }]
}

/** The upstream rejects a request with a payload that another one sealed. */
export function isSealedFor(
  targetName: string,
  item: ReasoningItem,
): item is ReasoningItem & { sealed: string } {
  const { sealed = '', sealedBy = targetName } = item
  return sealed !== '' && sealedBy === targetName
}
