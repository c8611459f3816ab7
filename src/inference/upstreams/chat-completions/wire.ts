import type { JsonObject } from '#lib/json.ts'

/** One message of a chat request. */
export type ChatMessage =
  | { role: 'system' | 'developer'; content: string }
  | { role: 'user'; content: string | ChatPart[] }
  | ({
      role: 'assistant'
      content: string
      tool_calls?: ChatToolCall[]
      prefix?: true
      reasoning_details?: JsonObject[]
      extra_content?: JsonObject
    } & ReasoningFields)
  | { role: 'tool'; tool_call_id: string; content: string }

export type ReasoningFields = { reasoning?: string; reasoning_content?: string }

export type ChatToolCall = {
  id: string
  type: 'function'
  extra_content?: JsonObject
  function: { name: string; arguments: string }
}

export type ChatPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string; detail?: string } }
  | { type: 'file'; file: { file_data: string; filename?: string } }
