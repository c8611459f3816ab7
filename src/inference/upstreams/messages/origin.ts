import type { RequestOrigin } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { legalCallId } from './call-id.ts'
import { redactedData } from './thinking.ts'
import { readText } from './wire.ts'

type OriginTarget = { model: string; maker: string; quirks: UpstreamQuirks }

/** The client's own account of itself, with a number that is another one in each request. */
const billingMark = 'x-anthropic-billing-header:'

/**
 * The body as its caller sent it, for an upstream of the same protocol. What is not ours stays: only
 * the model is named as the upstream names it, thoughts that we sealed are opened again, and call ids
 * of other protocols are spelled in legal signs.
 */
export function encodeOrigin(origin: RequestOrigin, target: OriginTarget): JsonObject {
  const { body } = origin
  const lost: unknown[] = []
  const messages = Array.isArray(body['messages'])
    ? body['messages'].flatMap((message: unknown) => {
        const kept = encodeMessage(message, { origin, maker: target.maker })
        if (kept.lostThoughts) lost.push(message)
        return kept.message === null ? [] : [kept.message]
      })
    : body['messages']
  const isUnthought = lost.includes(findOpenTurn(body['messages']))
  return {
    ...body,
    ...(body['system'] === undefined ? {} : { system: withoutBilling(body['system'], target) }),
    ...(isUnthought ? withoutBudget(body['thinking']) : {}),
    model: target.model,
    messages,
    stream: true,
  }
}

/** The texts differ in each request and stand first, so that nothing behind them is ever cached. */
function withoutBilling(system: unknown, { quirks }: OriginTarget): unknown {
  if (quirks.vendorFields || !Array.isArray(system)) return system
  return system.filter(
    (block) => !(isRecord(block) && readText(block['text']).startsWith(billingMark)),
  )
}

type Reading = { origin: RequestOrigin; maker: string }
type Kept = { message: unknown; lostThoughts: boolean }

function encodeMessage(message: unknown, reading: Reading): Kept {
  const content = isRecord(message) ? message['content'] : undefined
  if (!isRecord(message) || !Array.isArray(content)) return { message, lostThoughts: false }
  const blocks = content.map((block: unknown) => encodeBlock(block, reading))
  if (blocks.every((block, at) => block === content[at])) return { message, lostThoughts: false }
  const kept = blocks.filter((block) => block !== null)
  return {
    // A message that was nothing but thoughts is refused without them.
    message: kept.length === 0 ? null : { ...message, content: kept },
    lostThoughts: kept.length < blocks.length,
  }
}

/** null for thoughts that the upstream could not read. */
function encodeBlock(block: unknown, reading: Reading): unknown {
  if (!isRecord(block)) return block
  switch (block['type']) {
    case 'thinking':
      return encodeThoughts(block, 'signature', reading)
    case 'redacted_thinking':
      return encodeThoughts(block, 'data', reading)
    case 'tool_use':
      return withLegalId(block, 'id')
    case 'tool_result':
      return withLegalId(block, 'tool_use_id')
    default:
      return block
  }
}

function encodeThoughts(
  block: JsonObject,
  field: 'signature' | 'data',
  { origin, maker }: Reading,
): JsonObject | null {
  const opened = openSeal(origin, readText(block[field]))
  if (opened === 'foreign') return block
  if (opened === null || opened.payload === null || opened.maker !== maker) return null
  const redacted = redactedData(opened.payload)
  const value = field === 'data' ? redacted : redacted === null ? opened.payload : null
  return value === null ? null : { ...block, [field]: value }
}

/** A seal of ours that does not open any more is worth no more than one of another upstream. */
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

/** The turn of the assistant that goes on, because the results of its calls have come. */
function findOpenTurn(messages: unknown): unknown {
  if (!Array.isArray(messages)) return undefined
  const last: unknown = messages.at(-1)
  const content = isRecord(last) && last['role'] === 'user' ? last['content'] : undefined
  const answers = Array.isArray(content) && isRecord(content[0]) ? content[0]['type'] : undefined
  return answers === 'tool_result' ? messages.at(-2) : undefined
}

/** Thinking from the middle of a turn on is refused where the turn did not begin with thoughts. */
function withoutBudget(thinking: unknown): JsonObject {
  const isBudget = isRecord(thinking) && thinking['type'] === 'enabled'
  return isBudget ? { thinking: { type: 'disabled' } } : {}
}
