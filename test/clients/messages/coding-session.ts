import { asRecord, type JsonObject } from '#lib/json.ts'
import type { Gateway } from '#test/support/gateway.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'

/**
 * Requests of terminal coding clients: they use every feature of the vendor with any model, and
 * send a growing conversation.
 */

export const sessionId = '7b1c9d52-0f3a-4a8e-9d0c-2f5b6a7c8d9e'

const betas = [
  'coding-client-2025-02-19',
  'interleaved-thinking-2025-05-14',
  'context-management-2025-06-27',
  'never-heard-of-2027-01-01',
]

export function sessionHeaders(apiKey: string): Record<string, string> {
  return {
    authorization: `Bearer ${apiKey}`,
    'x-api-key': apiKey,
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
    'anthropic-beta': betas.join(','),
    'anthropic-dangerous-direct-browser-access': 'true',
    'x-claude-code-session-id': sessionId,
    'x-stainless-retry-count': '0',
    'x-stainless-timeout': '600',
    'user-agent': 'coding-client/2.3.0 (external, cli)',
  }
}

export const betaHeader = betas.join(',')

const cached = { cache_control: { type: 'ephemeral' } }

/** Precedes the system prompt, and changes with each request. */
function billingNote(nonce: number): JsonObject {
  const text = `x-anthropic-billing-header: cc_version=2.3.0; cch=${nonce.toString(16)};`
  return { type: 'text', text }
}

export const systemBlocks: readonly JsonObject[] = [
  { type: 'text', text: 'You are a coding agent.', ...cached },
  { type: 'text', text: 'The folder is /home/ada/sea. Today is a Saturday.', ...cached },
]

const object = (properties: JsonObject, required: readonly string[] = []) => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

export const readTool = {
  name: 'Read',
  description: 'Reads a file.',
  input_schema: object(
    { file_path: { type: 'string' }, offset: { type: 'number' }, limit: { type: 'number' } },
    ['file_path'],
  ),
}

export const tools: readonly JsonObject[] = [
  readTool,
  {
    name: 'Bash',
    description: 'Runs a command.',
    input_schema: object({ command: { type: 'string' } }),
    strict: true,
  },
  { name: 'mcp__sea__tides', description: 'Tides.', input_schema: object({}), defer_loading: true },
  { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
  { type: 'memory_20250818', name: 'memory' },
]

/** For a search, the client asks a second model that has nothing but this tool. */
export const webSearch = { type: 'web_search_20250305', name: 'web_search', max_uses: 8 }

/** One request of the session, with the conversation so far. */
export function sessionBody(
  model: string,
  messages: readonly JsonObject[],
  nonce: number,
): JsonObject {
  return {
    model,
    max_tokens: 32_000,
    stream: true,
    system: [billingNote(nonce), ...systemBlocks],
    messages: withMark(messages),
    tools,
    thinking: { type: 'adaptive' },
    output_config: { effort: 'high', task_budget: { type: 'tokens', total: 200_000 } },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    metadata: { user_id: `user_0a1b_account__session_${sessionId}` },
    diagnostics: { previous_message_id: null },
  }
}

/** The last block marks the end of the cached prompt; the mark moves with each turn. */
function withMark(messages: readonly JsonObject[]): JsonObject[] {
  return messages.map((message, at) => {
    const { content } = message
    if (at < messages.length - 1 || !Array.isArray(content)) return message
    const blocks = content.map((block, place) =>
      place === content.length - 1 ? { ...asRecord(block), ...cached } : block,
    )
    return { ...message, content: blocks }
  })
}

/** Sends one request of the session, and returns the final message of its stream. */
export async function sendTurn(
  gateway: Gateway,
  headers: Record<string, string>,
  body: JsonObject,
): Promise<JsonObject> {
  const httpResponse = await gateway.request('/compat/v1/messages?beta=true', {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  const text = await httpResponse.text()
  if (!httpResponse.ok) throw new Error(text)
  return checkMessageStream(text).message ?? {}
}
