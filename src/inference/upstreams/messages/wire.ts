import type { JsonObject } from '#lib/json.ts'

/** The body of POST /v1/messages, with the fields that we send. */
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

/** The kind of block that a delta makes grow; absent for deltas that tell nothing of it. */
export const blockOfDelta: Readonly<Record<string, 'text' | 'thinking' | 'tool'>> = {
  text_delta: 'text',
  citations_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
  input_json_delta: 'tool',
}

/** `tool_use`, `server_tool_use`, `mcp_tool_use`: what has an input that arrives in pieces. */
export function isToolUse(blockType: string): boolean {
  return blockType.endsWith('tool_use')
}

/** A text; empty where there is none. */
export function readText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The JSON text of what a tool is called with; empty for nothing at all. */
export function readInput(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = JSON.stringify(value)
  return text === '{}' ? '' : text
}
