import type { RequestItem } from '#inference/request.ts'
import { estimateTokens } from '#inference/token-estimate.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { describePart } from './transcript.ts'

export type MessageItem = Extract<RequestItem, { type: 'message' }>

/**
 * The sealed content of a compaction item: everything that is needed of the context that it replaces.
 * Clients may drop the items before it, or send them.
 */
export type Compaction = {
  readonly summary: string
  /** System and developer messages; those before the item take precedence. */
  readonly instructions: readonly MessageItem[]
  /** The kept user messages; null if they precede the item in plain text. */
  readonly questions: readonly MessageItem[] | null
  /** The last tool calls, which the model is still working on. */
  readonly tail: readonly RequestItem[]
}

/** The items of a context that are kept; a summary replaces the rest. */
export type Division = {
  readonly instructions: readonly MessageItem[]
  readonly questions: readonly MessageItem[]
  readonly tail: readonly RequestItem[]
  /** Whether any items would be replaced by a summary. */
  readonly hasRest: boolean
}

/** Marks a summary, which the next compaction includes, unlike the instructions of the client. */
const summaryHead =
  '[Summary of the conversation so far]\n' +
  'The earlier part of this conversation was condensed. This is what matters of it; messages of ' +
  'the user that are still of use follow as they were written. Go on from here, and say nothing ' +
  'about the condensing.\n\n'

/** The longest message with images or files that is sealed completely, in JSON characters. */
const sealedMessageCharsMax = 1_048_576

/** The last user message is always kept, older ones up to the limit. */
export function divide(items: readonly RequestItem[], keptTokensMax: number): Division {
  const tail = findTail(items, keptTokensMax)
  const body = items.slice(0, items.length - tail.length)
  const userMessages = body.filter(isQuestion)
  const questions = userMessages.slice(
    userMessages.length - countFitting(userMessages, keptTokensMax),
  )
  const instructions = body.filter(isInstruction)
  const kept = new Set<RequestItem>([...instructions, ...questions])
  const hasRest = body.some((item) => !kept.has(item) && !isSummary(item))
  return { instructions, questions, tail, hasRest }
}

/** The context that replaces the items before a compaction item. */
export function applyCompaction(
  before: readonly RequestItem[],
  compaction: Compaction,
): RequestItem[] {
  const instructions = before.filter(isInstruction)
  return [
    ...(instructions.length > 0 ? instructions : compaction.instructions),
    summaryMessage(compaction.summary),
    ...(compaction.questions ?? before.filter(isQuestion)),
    ...compaction.tail,
  ]
}

export function isInstruction(item: RequestItem): item is MessageItem {
  if (item.type !== 'message' || isSummary(item)) return false
  return item.role === 'developer' || item.role === 'system'
}

export function writeCompaction({ summary, instructions, questions, tail }: Compaction): string {
  const kept = questions?.map(withoutLargeData) ?? null
  return JSON.stringify({ summary, instructions, questions: kept, tail })
}

/** Only content that this gateway sealed is read, so its items are not validated again. */
export function readCompaction(plain: string): Compaction | null {
  const value = parseJson(plain)
  return isCompaction(value) ? value : null
}

function isCompaction(value: unknown): value is Compaction {
  if (!isRecord(value)) return false
  const { summary, instructions, questions, tail } = value
  return (
    typeof summary === 'string' &&
    Array.isArray(instructions) &&
    (questions === null || Array.isArray(questions)) &&
    Array.isArray(tail)
  )
}

function summaryMessage(summary: string): MessageItem {
  return {
    type: 'message',
    role: 'developer',
    parts: [{ type: 'text', text: summaryHead + summary }],
  }
}

function isSummary(item: RequestItem): boolean {
  if (item.type !== 'message' || item.role !== 'developer') return false
  const [part] = item.parts
  return part?.type === 'text' && part.text.startsWith(summaryHead)
}

function isQuestion(item: RequestItem): item is MessageItem {
  return item.type === 'message' && item.role === 'user'
}

function countFitting(messages: readonly MessageItem[], keptTokensMax: number): number {
  let tokensLeft = keptTokensMax
  let count = 0
  for (const message of messages.toReversed()) {
    tokensLeft -= tokensOf([message])
    if (tokensLeft < 0 && count > 0) break
    count++
  }
  return count
}

/**
 * The calls at the end with the reasoning before and the results after them. They are kept if they are
 * short, or if a result is pending, which requires its call.
 */
function findTail(items: readonly RequestItem[], tokensMax: number): readonly RequestItem[] {
  let start = items.length
  for (const type of ['tool-result', 'tool-call', 'reasoning']) {
    while (items[start - 1]?.type === type) start--
  }
  const tail = items.slice(start)
  const called = new Set(tail.flatMap((item) => (item.type === 'tool-call' ? [item.callId] : [])))
  const answered = tail.flatMap((item) => (item.type === 'tool-result' ? [item.callId] : []))
  if (called.size === 0 || !answered.every((callId) => called.has(callId))) return []
  const isPending = answered.length < called.size
  return isPending || tokensOf(tail) <= tokensMax ? tail : []
}

function tokensOf(items: readonly RequestItem[]): number {
  return estimateTokens({ instructions: null, items, tools: [] })
}

/** Large images and files, which every request would send again, are replaced by their names. */
function withoutLargeData(message: MessageItem): MessageItem {
  const { parts } = message
  const isText = parts.every((part) => part.type === 'text')
  if (isText || JSON.stringify(parts).length <= sealedMessageCharsMax) return message
  return { ...message, parts: parts.map((part) => ({ type: 'text', text: describePart(part) })) }
}
