import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import type { ReplayAnswer } from './replay-upstream.ts'

/** A native Messages upstream that validates requests as strictly as its vendor. */

type Block = JsonObject & { type: string }
type Message = { role: string; content: Block[] }

/** The signature of its thinking. */
export const signatureOf = (thinking: string) => `sig-${Bun.hash(thinking).toString(36)}`
/** Redacted thinking. */
export const redactedThought = 'b3BhcXVl'

export function messagesAnswer(body: string): ReplayAnswer {
  const request = asRecord(JSON.parse(body))
  const messages = readMessages(request['messages'])
  const fault = faultOf(request, messages)
  if (fault !== null) return errorAnswer(400, 'invalid_request_error', fault)
  return { body: streamOf(answer(request, messages)) }
}

export function errorAnswer(status: number, type: string, message: string): ReplayAnswer {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_upstream' }),
  }
}

/** Blocks on the wire, with the events of their deltas. */
export function streamOf(content: readonly Block[]): string {
  const isCall = content.some(({ type }) => type === 'tool_use')
  const usage = { input_tokens: 7, cache_read_input_tokens: 4, cache_creation_input_tokens: 2 }
  const message = { id: 'msg_upstream', type: 'message', role: 'assistant', model: 'there' }
  const payloads = [
    {
      type: 'message_start',
      message: {
        ...message,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage, output_tokens: 1 },
      },
    },
    { type: 'ping' },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: shellOf(block) },
      ...deltasOf(block).map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: 3, output_tokens_details: { thinking_tokens: 1 } },
    },
    { type: 'message_stop' },
  ]
  return payloads
    .map((payload) => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`)
    .join('')
}

function shellOf(block: Block): Block {
  if (block.type === 'text') return { ...block, text: '' }
  if (block.type === 'thinking') return { ...block, thinking: '', signature: '' }
  return block.type === 'tool_use' ? { ...block, input: {} } : block
}

function deltasOf(block: Block): JsonObject[] {
  const pieces = (text: unknown) => String(text).match(/\S+\s*/g) ?? []
  switch (block.type) {
    case 'text':
      return pieces(block['text']).map((text) => ({ type: 'text_delta', text }))
    case 'thinking':
      return [
        ...pieces(block['thinking']).map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: block['signature'] },
      ]
    case 'tool_use':
      return pieces(JSON.stringify(block['input'])).map((partial_json) => ({
        type: 'input_json_delta',
        partial_json,
      }))
    default:
      return []
  }
}

function answer(request: JsonObject, messages: readonly Message[]): Block[] {
  const lastContent = messages.at(-1)?.content ?? []
  const results = lastContent.filter(({ type }) => type === 'tool_result')
  const prompt = JSON.stringify(lastContent)
  const say = (text: string): Block => ({ type: 'text', text })
  const call = (id: string, city: string): Block => {
    const tool = Array.isArray(request['tools']) ? asRecord(request['tools'][0]) : {}
    return { type: 'tool_use', id, name: String(tool['name']), input: { city } }
  }
  const thinking = asRecord(request['thinking'])['type']
  const isThinking = thinking === 'enabled' || thinking === 'adaptive'
  const thoughts: Block[] = isThinking ? think('Hm, yes.') : []
  if (prompt.includes('recall')) return [say(recall(request, messages))]
  if (results.length > 0) return [...thoughts, say(`It is ${results.map(textOf).join(' and ')}.`)]
  if (prompt.includes('parallel')) {
    return [...thoughts, call('toolu_a', 'Oslo'), call('toolu_b', 'Rome')]
  }
  if (request['tools'] !== undefined) return [...thoughts, call('toolu_a', 'Oslo')]
  if (prompt.includes('JSON') || isRecord(asRecord(request['output_config'])['format'])) {
    return [say('{"answer":42}')]
  }
  return [...thoughts, say('Hello wörld')]
}

function think(thinking: string): Block[] {
  return [
    { type: 'thinking', thinking, signature: signatureOf(thinking) },
    { type: 'redacted_thinking', data: redactedThought },
  ]
}

/** The complete prompt in one line, so that tests see what the model got. */
function recall(request: JsonObject, messages: readonly Message[]): string {
  const tell = ({ role, content }: Message) => `${role} said ${content.map(textOf).join(' ')}`
  return [`system said ${request['system'] ?? 'nothing'}`, ...messages.map(tell)].join('; ')
}

function textOf(block: Block): string {
  const { type, text, thinking, content } = block
  if (typeof content === 'string') return content
  if (type === 'tool_result') return Array.isArray(content) ? content.map(textOf).join(' ') : ''
  return String(text ?? thinking ?? `[${type}]`)
}

/** The message of a validation error, in the format of the vendor; null for a valid request. */
export function faultOf(request: JsonObject, messages: readonly Message[]): string | null {
  const { max_tokens: max, thinking } = request
  if (typeof max !== 'number' || max < 1) return 'max_tokens: Field required'
  const budget = asRecord(thinking)['budget_tokens']
  if (typeof budget === 'number' && (budget < 1024 || budget >= max))
    return 'thinking.budget_tokens'
  if (messages.length === 0) return 'messages: at least one message is required'
  const ids = new Set<unknown>()
  for (const [at, message] of messages.entries()) {
    const fault = faultOfMessage(message, messages[at - 1], ids)
    if (fault !== null) return `messages.${at}: ${fault}`
  }
  return null
}

function faultOfMessage(message: Message, before: Message | undefined, ids: Set<unknown>) {
  const { role, content } = message
  if (role === before?.role) return 'roles must alternate'
  if (content.length === 0) return 'content must not be empty'
  const openToolUses = (before?.content ?? [])
    .filter(({ type }) => type === 'tool_use')
    .map(({ id }) => id)
  const results = content.filter(({ type }) => type === 'tool_result')
  const given = results.map((result) => result['tool_use_id'])
  if (openToolUses.toSorted().join() !== given.toSorted().join())
    return '`tool_use` ids were found without `tool_result` blocks'
  if (results.some((result, at) => content[at] !== result)) return 'tool_result blocks come first'
  for (const block of content) {
    if (block.type === 'text' && block['text'] === '')
      return 'text content blocks must be non-empty'
    if (
      block.type === 'thinking' &&
      block['signature'] !== signatureOf(String(block['thinking']))
    ) {
      return 'Invalid `signature` in `thinking` block'
    }
    if (block.type === 'redacted_thinking' && block['data'] !== redactedThought) {
      return 'Invalid `data` in `redacted_thinking` block'
    }
    if (block.type !== 'tool_use') continue
    if (!/^[a-zA-Z0-9_-]+$/.test(String(block['id'])))
      return 'tool_use.id: String should match pattern'
    if (ids.has(block['id'])) return '`tool_use` ids must be unique'
    if (!isRecord(block['input'])) return 'tool_use.input: Input should be a valid dictionary'
    ids.add(block['id'])
  }
  return null
}

/**
 * Messages with content blocks, and consecutive messages of one role merged, as the vendor reads
 * them.
 */
export function readMessages(value: unknown): Message[] {
  const list = Array.isArray(value) ? value.map(asRecord) : []
  return list.map(({ role, content }) => ({
    role: String(role),
    content: Array.isArray(content) ? content : [{ type: 'text', text: String(content) }],
  }))
}
