import { readString } from '#inference/upstream-fields.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { encodePlainId } from '#lib/plain-id.ts'

export type WireMessage =
  | { role: 'user' | 'assistant'; content: WireBlock[] }
  | { role: 'system'; content: string }

/** A content block; `content` is that of a tool result. */
export type WireBlock = {
  type: string
  text?: string
  content?: WireBlock[]
  [field: string]: unknown
}

/** The kind of block that a delta extends; other deltas fit every block. */
export const blockOfDelta: Readonly<Record<string, 'text' | 'thinking' | 'tool'>> = {
  text_delta: 'text',
  citations_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
  input_json_delta: 'tool',
}

/** `tool_use`, `server_tool_use`, `mcp_tool_use`: blocks whose input arrives in pieces. */
export function isToolUse(blockType: string): boolean {
  return blockType.endsWith('tool_use')
}

/** The JSON text of a tool's input; empty for an empty input. */
export function readInput(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = JSON.stringify(value)
  return text === '{}' ? '' : text
}

/** The prefix of a call id that was re-encoded. */
const encodedPrefix = 'call64_'

/** A call id in the characters that the protocol allows; other protocols have `functions.Read:0`. */
export function legalCallId(callId: string): string {
  return encodePlainId(callId, encodedPrefix)
}

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

/** The data of a redacted-thinking block; null where the payload is a signature. */
export function redactedData(sealed: string): string | null {
  return sealed.startsWith(redactedPrefix) ? sealed.slice(redactedPrefix.length) : null
}
