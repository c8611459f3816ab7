import type { RequestItem } from '#inference/request.ts'
import { estimateTokens } from '#inference/tokens.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { describePart } from './transcript.ts'

export type MessageItem = Extract<RequestItem, { type: 'message' }>

/**
 * What a compaction item holds, sealed: everything that the context needs which it stands for. The
 * item alone is enough, so a client may drop what stands before it, and may as well leave it there.
 */
export type Compaction = {
  readonly summary: string
  /** System and developer messages; those that stand before the item go before these. */
  readonly instructions: readonly MessageItem[]
  /** The messages of the user that are kept; null: they stand before the item, in the open. */
  readonly questions: readonly MessageItem[] | null
  /** The last calls of tools, which the model is still at work on. */
  readonly tail: readonly RequestItem[]
}

/** What becomes of a context when it is compacted: these items stay, a summary tells the rest. */
export type Division = {
  readonly instructions: readonly MessageItem[]
  readonly questions: readonly MessageItem[]
  readonly tail: readonly RequestItem[]
  /** Whether there is anything that a summary alone would tell. */
  readonly hasRest: boolean
}

/** Tells a summary, which the next compaction takes up, from the instructions of a caller. */
const summaryHead =
  '[Summary of the conversation so far]\n' +
  'The earlier part of this conversation was condensed. This is what matters of it; messages of ' +
  'the user that are still of use follow as they were written. Go on from here, and say nothing ' +
  'about the condensing.\n\n'

/** The longest message with images or files that is sealed whole, as JSON in characters. */
const sealedMessageCharsMax = 1_048_576

/** The last message of the user stays whatever its length, older ones as far as they fit. */
export function divide(items: readonly RequestItem[], keptTokensMax: number): Division {
  const tail = findTail(items, keptTokensMax)
  const body = items.slice(0, items.length - tail.length)
  const asked = body.filter(isQuestion)
  const questions = asked.slice(asked.length - countFitting(asked, keptTokensMax))
  const instructions = body.filter(isInstruction)
  const staying = new Set<RequestItem>([...instructions, ...questions])
  const hasRest = body.some((item) => !staying.has(item) && !isSummary(item))
  return { instructions, questions, tail, hasRest }
}

/** The context that takes the place of what was before a compaction item. */
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

/** Only what we sealed ourselves is read, so its inner shape is not looked at again. */
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

function countFitting(asked: readonly MessageItem[], keptTokensMax: number): number {
  let tokensLeft = keptTokensMax
  let count = 0
  for (const message of asked.toReversed()) {
    tokensLeft -= tokensOf([message])
    if (tokensLeft < 0 && count > 0) break
    count++
  }
  return count
}

/**
 * The calls at the end with what was thought before them and the results behind them. They stay
 * where they are short, and where a result is still to come, which needs its call.
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

/** Images and files would come back with every request; when they are large, they are only named. */
function withoutLargeData(message: MessageItem): MessageItem {
  const { parts } = message
  const isText = parts.every((part) => part.type === 'text')
  if (isText || JSON.stringify(parts).length <= sealedMessageCharsMax) return message
  return { ...message, parts: parts.map((part) => ({ type: 'text', text: describePart(part) })) }
}
