import { readText } from '#inference/upstream-fields.ts'
import type { JsonObject } from '#lib/json.ts'
import { createPart, extendsPart, opensNewPart, type Part, recordSent, unsentText } from './part.ts'
import { charsOf, readTexts } from './read.ts'
import { appendEvent, type BlockSequence, beginBlock, createLane, type Lane } from './sequence.ts'
import type { ReasoningCarrier } from './wire.ts'

/** A reasoning item: one block, whose parts are the paragraphs of both carriers. */
export type Reasoning = {
  readonly kind: 'reasoning'
  readonly lane: Lane
  current: Part<ReasoningCarrier> | null
  isOpen: boolean
  /** The number of the paragraph within the open block; -1 before the first. */
  paragraph: number
  /** The sealed payload, between the end of the item and the end of its block. */
  sealed: string | null
  /** `sealedBy` of the payload. */
  readonly sealedBy: string
  readonly sent: Readonly<Record<ReasoningCarrier, { chars: number; parts: number }>>
}

export type Paragraph = { carrier: ReasoningCarrier; index: number | null; text: string }

export function createReasoning(sequence: BlockSequence, sealedBy: string): Reasoning {
  const reasoning: Reasoning = {
    kind: 'reasoning',
    lane: createLane(sequence, 'reasoning', (complete) => closeBlock(reasoning, complete)),
    current: null,
    isOpen: false,
    paragraph: -1,
    sealed: null,
    sealedBy,
    sent: { raw: { chars: 0, parts: 0 }, summary: { chars: 0, parts: 0 } },
  }
  return reasoning
}

export function announceParagraph(
  reasoning: Reasoning,
  carrier: ReasoningCarrier,
  index: number | null,
): void {
  const { current } = reasoning
  if (current === null || opensNewPart(current, carrier, index)) {
    openPart(reasoning, carrier).index = index
  } else {
    current.index ??= index
  }
}

export function addReasoning(reasoning: Reasoning, piece: Paragraph): void {
  announceParagraph(reasoning, piece.carrier, piece.index)
  if (reasoning.current !== null) send(reasoning, reasoning.current, piece.text)
}

/** Completes a paragraph: emits what was not streamed of its text. */
export function completeReasoning(
  reasoning: Reasoning,
  carrier: ReasoningCarrier,
  text: string,
): void {
  const { current } = reasoning
  const isCurrent =
    current !== null && current.label === carrier && (!current.done || extendsPart(current, text))
  const part = isCurrent ? current : openPart(reasoning, carrier)
  send(reasoning, part, unsentText(part, text))
  part.done = true
}

/** Emits the paragraphs of the finished item that were not streamed, and its sealed payload. */
export function finishReasoning(reasoning: Reasoning, item: JsonObject): void {
  const { sent } = reasoning
  const texts = { raw: readTexts(item['content']), summary: readTexts(item['summary']) }
  const isSame = withoutSpace(texts.raw) === withoutSpace(texts.summary)
  for (const carrier of ['raw', 'summary'] as const) {
    const other = carrier === 'raw' ? 'summary' : 'raw'
    // Some servers send the same text in both carriers, or stream it in one and end with the other.
    const isInOther = sent[carrier].chars === 0 && sent[other].chars > 0
    if (isInOther && (isSame || texts[other].length === 0)) continue
    finishCarrier(reasoning, carrier, texts[carrier])
  }
  reasoning.sealed = readText(item['encrypted_content'])
  if (reasoning.sealed !== null && !reasoning.isOpen) openBlock(reasoning)
}

function finishCarrier(
  reasoning: Reasoning,
  carrier: ReasoningCarrier,
  texts: readonly string[],
): void {
  const { chars, parts } = reasoning.sent[carrier]
  if (charsOf(texts) <= chars) return
  for (const [index, text] of texts.entries()) {
    if (index >= parts) {
      const part = openPart(reasoning, carrier)
      send(reasoning, part, text)
      part.done = true
    } else if (index === parts - 1) {
      completeReasoning(reasoning, carrier, text)
    }
  }
}

function openPart(reasoning: Reasoning, carrier: ReasoningCarrier): Part<ReasoningCarrier> {
  reasoning.lane.settled = false
  reasoning.current = createPart(carrier)
  return reasoning.current
}

function openBlock(reasoning: Reasoning): void {
  const { lane } = reasoning
  reasoning.isOpen = true
  reasoning.paragraph = -1
  beginBlock(lane, { type: 'reasoning-start', block: lane.block })
}

function send(reasoning: Reasoning, part: Part<ReasoningCarrier>, text: string): void {
  if (text === '') return
  const { lane, sent } = reasoning
  const isFirst = part.sentChars === 0
  if (!reasoning.isOpen) openBlock(reasoning)
  if (isFirst || reasoning.paragraph === -1) reasoning.paragraph++
  if (isFirst) sent[part.label].parts++
  sent[part.label].chars += text.length
  recordSent(part, text)
  appendEvent(lane, { type: 'reasoning-delta', block: lane.block, part: reasoning.paragraph, text })
}

function closeBlock(reasoning: Reasoning, complete: boolean): void {
  if (!reasoning.isOpen) return
  const { lane, sealed, sealedBy } = reasoning
  const seal = sealed === null ? {} : { sealed, sealedBy }
  appendEvent(lane, { type: 'reasoning-end', block: lane.block, complete, ...seal })
  reasoning.isOpen = false
  reasoning.sealed = null
}

function withoutSpace(texts: readonly string[]): string {
  return texts.join('').replace(/\s+/g, '')
}
