import { reasoningText } from '#inference/message-parts.ts'
import type { ReasoningItem } from '#inference/request.ts'
import { readString } from '#inference/upstream-fields.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { WireBlock } from './wire.ts'

/**
 * Sealed thinking is a signature beside the thinking, or the encrypted thinking itself (redacted
 * thinking). Events carry either as one opaque payload; this prefix marks redacted thinking.
 */
const redactedPrefix = 'redacted:'

/** The sealed payload in an event of a stream; empty where it has none. */
export function readSealed(payload: JsonObject): string {
  const part = payload['delta'] ?? payload['content_block']
  if (!isRecord(part)) return ''
  const { type } = part
  if (type === 'signature_delta' || type === 'thinking') return readString(part['signature'])
  const data = type === 'redacted_thinking' ? readString(part['data']) : ''
  return data === '' ? '' : redactedPrefix + data
}

/** The block for reasoning of an earlier turn; none where this target did not seal it. */
export function encodeThinking(item: ReasoningItem, targetName: string): WireBlock[] {
  const { sealed = '', sealedBy } = item
  if (sealed === '' || sealedBy !== targetName) return []
  const data = redactedData(sealed)
  if (data !== null) return [{ type: 'redacted_thinking', data }]
  return [{ type: 'thinking', thinking: reasoningText(item), signature: sealed }]
}

/** The data of a redacted-thinking block; null where the payload is a signature. */
export function redactedData(sealed: string): string | null {
  return sealed.startsWith(redactedPrefix) ? sealed.slice(redactedPrefix.length) : null
}
