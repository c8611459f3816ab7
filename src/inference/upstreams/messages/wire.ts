import type { JsonObject } from '#lib/json.ts'
import { encodePlainId } from '#lib/plain-id.ts'

/** The body of POST /v1/messages: the fields that Sluice sends. */
export type MessagesBody = {
  model: string
  max_tokens: number
  messages: WireMessage[]
  stream: true
  system?: string
  tools?: WireTool[]
  tool_choice?: WireToolChoice
  thinking?: WireThinking
  output_config?: { effort?: string; format?: { type: 'json_schema'; schema: object } }
  stop_sequences?: readonly string[]
  temperature?: number
  top_p?: number
  top_k?: number
  metadata?: { user_id: string }
  service_tier?: string
  cache_control?: { type: 'ephemeral' }
}

export type WireMessage =
  | { role: 'user' | 'assistant'; content: WireBlock[] }
  | { role: 'system'; content: string }

export type WireBlock =
  | WireContent
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'tool_use'; id: string; name: string; input: JsonObject }
  | WireToolResult

export type WireToolResult = {
  type: 'tool_result'
  tool_use_id: string
  content: WireContent[]
  is_error?: true
}

export type WireContent =
  | { type: 'text'; text: string }
  | { type: 'image'; source: WireSource }
  | { type: 'document'; source: WireSource; title?: string }

type WireSource =
  | { type: 'base64'; media_type: string; data: string }
  | { type: 'text'; media_type: 'text/plain'; data: string }
  | { type: 'url'; url: string }

export type WireTool = {
  name: string
  description?: string
  input_schema: Readonly<Record<string, unknown>>
  strict?: true
}

export type WireToolChoice =
  | { type: 'none' }
  | { type: 'auto' | 'any'; disable_parallel_tool_use?: true }
  | { type: 'tool'; name: string; disable_parallel_tool_use?: true }

export type WireThinking =
  | { type: 'enabled'; budget_tokens: number }
  | { type: 'adaptive'; display?: 'summarized' }
  | { type: 'disabled' }

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
