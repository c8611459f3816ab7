import type { ReasoningItem } from '#inference/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { readText, type WireBlock } from './wire.ts'

/**
 * What an upstream sealed of its thoughts is a signature beside them, or the thoughts themselves
 * (redacted thinking). It travels as one opaque payload, from which its place can be told.
 */
const redactedMark = 'redacted:'

/** The payload in an event of a stream; empty where it has none. */
export function readSealed(payload: JsonObject): string {
  const part = payload['delta'] ?? payload['content_block']
  if (!isRecord(part)) return ''
  const { type } = part
  if (type === 'signature_delta' || type === 'thinking') return readText(part['signature'])
  const data = type === 'redacted_thinking' ? readText(part['data']) : ''
  return data === '' ? '' : redactedMark + data
}

/** The block for thoughts of an earlier turn; none where this maker could not read them. */
export function encodeThinking(item: ReasoningItem, maker: string): WireBlock[] {
  const { sealed = '', sealedBy } = item
  if (sealed === '' || sealedBy !== maker) return []
  const data = redactedData(sealed)
  if (data !== null) return [{ type: 'redacted_thinking', data }]
  const thinking = item.text === '' ? item.summary.join('\n\n') : item.text
  return [{ type: 'thinking', thinking, signature: sealed }]
}

/** What stands in a block of redacted thinking; null where the payload is a signature. */
export function redactedData(sealed: string): string | null {
  return sealed.startsWith(redactedMark) ? sealed.slice(redactedMark.length) : null
}
