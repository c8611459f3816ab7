import type { RequestOrigin } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { readString } from '#inference/upstream-fields.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { legalCallId, redactedData } from './wire.ts'

type OriginTarget = { model: string; targetName: string; quirks: UpstreamQuirks }

/** The prefix of a client's billing text, which contains a number that changes in each request. */
const billingPrefix = 'x-anthropic-billing-header:'

/**
 * The body as its client sent it, for an upstream of the same protocol. Only the model name is
 * replaced, thinking that Sluice sealed is unsealed, results of searches that Sluice ran are
 * dropped, and call ids of other protocols are re-encoded.
 */
export function encodeOrigin(origin: RequestOrigin, target: OriginTarget): JsonObject {
  const { body } = origin
  const lost: unknown[] = []
  const messages = Array.isArray(body['messages'])
    ? body['messages'].flatMap((message: unknown) => {
        const kept = encodeMessage(message, { origin, maker: target.targetName })
        if (kept.lostThinking) lost.push(message)
        return kept.message === null ? [] : [kept.message]
      })
    : body['messages']
  const hasLostThinking = lost.includes(findContinuedTurn(body['messages']))
  return {
    ...body,
    ...(body['system'] === undefined ? {} : { system: withoutBilling(body['system'], target) }),
    ...(hasLostThinking ? disableThinking(body['thinking']) : {}),
    model: target.model,
    messages,
  }
}

/** The leading billing texts differ in each request and would defeat the prompt cache. */
function withoutBilling(system: unknown, { quirks }: OriginTarget): unknown {
  if (quirks.vendorFields || !Array.isArray(system)) return system
  return system.filter(
    (block) => !(isRecord(block) && readString(block['text']).startsWith(billingPrefix)),
  )
}

type EncodeContext = { origin: RequestOrigin; maker: string }
type EncodedMessage = { message: unknown; lostThinking: boolean }

function encodeMessage(message: unknown, context: EncodeContext): EncodedMessage {
  const content = isRecord(message) ? message['content'] : undefined
  if (!isRecord(message) || !Array.isArray(content)) return { message, lostThinking: false }
  const blocks = content.map((block: unknown) => encodeBlock(block, context))
  if (blocks.every((block, index) => block === content[index]))
    return { message, lostThinking: false }
  const kept = blocks.filter((block) => block !== null)
  return {
    // An empty message is rejected, so one that contained only thinking is dropped.
    message: kept.length === 0 ? null : { ...message, content: kept },
    lostThinking: kept.length < blocks.length,
  }
}

/** Returns null for thinking that the upstream could not read. */
function encodeBlock(block: unknown, context: EncodeContext): unknown {
  if (!isRecord(block)) return block
  switch (block['type']) {
    case 'thinking':
      return encodeSealedThinking(block, 'signature', context)
    case 'redacted_thinking':
      return encodeSealedThinking(block, 'data', context)
    case 'tool_use':
      return withLegalId(block, 'id')
    case 'tool_result':
      return withFiles(withLegalId(block, 'tool_use_id'), context)
    case 'web_search_tool_result':
      return withoutOtherResults(block, context)
    case 'image':
    case 'document':
      return withContent(block, context)
    default:
      return block
  }
}

/** A tool result whose stored files are replaced by their content. */
function withFiles(block: JsonObject, context: EncodeContext): JsonObject {
  const { content } = block
  if (context.origin.files === undefined || !Array.isArray(content)) return block
  const inner = content.map((part: unknown) => (isRecord(part) ? withContent(part, context) : part))
  return { ...block, content: inner }
}

/** An image or a document; the content of a stored file replaces its id. */
function withContent(block: JsonObject, { origin }: EncodeContext): JsonObject {
  const { source } = block
  if (origin.files === undefined || !isRecord(source) || source['type'] !== 'file') return block
  const file = origin.files.get(readString(source['file_id']))
  if (file === undefined) return block
  const inline =
    'base64' in file
      ? { type: 'base64', media_type: file.mimeType, data: file.base64 }
      : { type: 'text', media_type: file.mimeType, data: file.text }
  return { ...block, source: inline }
}

function encodeSealedThinking(
  block: JsonObject,
  field: 'signature' | 'data',
  { origin, maker }: EncodeContext,
): JsonObject | null {
  const opened = openSeal(origin, readString(block[field]))
  if (opened === 'foreign') return block
  if (opened === null || opened.payload === null || opened.maker !== maker) return null
  const redacted = redactedData(opened.payload)
  const value = field === 'data' ? redacted : redacted === null ? opened.payload : null
  return value === null ? null : { ...block, [field]: value }
}

/** Without results of other searches than the upstream's own, whose content it could not decrypt. */
function withoutOtherResults(block: JsonObject, { origin }: EncodeContext): JsonObject {
  const { content } = block
  if (!Array.isArray(content)) return block
  const own = content.filter((result: unknown) => {
    const sealed = isRecord(result) ? readString(result['encrypted_content']) : ''
    return sealed !== '' && openSeal(origin, sealed) === 'foreign'
  })
  return own.length === content.length ? block : { ...block, content: own }
}

/** Thinking whose seal cannot be opened is treated as that of another upstream. */
function openSeal(origin: RequestOrigin, sealed: string) {
  try {
    return origin.openSeal(sealed) ?? 'foreign'
  } catch (error) {
    if (error instanceof AppError && error.kind === 'invalid_encrypted_content') return null
    throw error
  }
}

function withLegalId(block: JsonObject, field: string): JsonObject {
  const id = block[field]
  if (typeof id !== 'string' || id === '') return block
  const legal = legalCallId(id)
  return legal === id ? block : { ...block, [field]: legal }
}

/** The assistant turn that continues because the input ends with the results of its calls. */
function findContinuedTurn(messages: unknown): unknown {
  if (!Array.isArray(messages)) return undefined
  const last: unknown = messages.at(-1)
  const content = isRecord(last) && last['role'] === 'user' ? last['content'] : undefined
  const firstType = Array.isArray(content) && isRecord(content[0]) ? content[0]['type'] : undefined
  return firstType === 'tool_result' ? messages.at(-2) : undefined
}

/** Servers reject thinking in the middle of a turn that did not begin with thinking. */
function disableThinking(thinking: unknown): JsonObject {
  const isBudget = isRecord(thinking) && thinking['type'] === 'enabled'
  return isBudget ? { thinking: { type: 'disabled' } } : {}
}
