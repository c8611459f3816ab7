import type { TextForm, TokenLogprob } from '#inference/events.ts'
import { readLogprobs, readText } from '#inference/upstream-fields.ts'
import type { JsonObject } from '#lib/json.ts'
import { createPart, extendsPart, opensNewPart, type Part, recordSent, unsentText } from './part.ts'
import { charsOf, readCitation, readMessageContent } from './read.ts'
import { appendEvent, type BlockSequence, beginBlock, createLane, type Lane } from './sequence.ts'

/** A message item; each of its parts becomes a text block. */
export type Message = {
  readonly kind: 'message'
  readonly lane: Lane
  /** Whether log probabilities are emitted. */
  readonly logprobs: boolean
  current: Part<TextForm> | null
  isOpen: boolean
  phase: string | null
  sentChars: number
  /** Parts that carried text; they identify the parts of the finished item. */
  sentParts: number
  annotationsSeen: number
}

export type TextPiece = { form: TextForm; text: string; logprobs: unknown }

export function createMessage(sequence: BlockSequence, options: { logprobs: boolean }): Message {
  const message: Message = {
    kind: 'message',
    lane: createLane(sequence, 'message', (complete) => closeBlock(message, complete)),
    logprobs: options.logprobs,
    current: null,
    isOpen: false,
    phase: null,
    sentChars: 0,
    sentParts: 0,
    annotationsSeen: 0,
  }
  return message
}

export function announceMessage(message: Message, item: JsonObject): void {
  message.phase ??= readText(item['phase'])
}

export function announceTextPart(message: Message, form: TextForm, index: number | null): void {
  const { current } = message
  if (current === null || opensNewPart(current, form, index)) openPart(message, form).index = index
  else current.index ??= index
}

/**
 * Emits a delta. It belongs to the current part, regardless of its index: vLLM continues the numbers of
 * content parts from item to item, and other servers omit them.
 */
export function addText(message: Message, piece: TextPiece): void {
  const { current } = message
  const isContinued = current !== null && current.label === piece.form && !current.done
  const part = isContinued ? current : openPart(message, piece.form)
  send(message, part, piece)
}

/** Completes a part: emits what was not streamed of its text. */
export function completeText(message: Message, piece: TextPiece): void {
  const { current } = message
  const isCurrent =
    current !== null &&
    current.label === piece.form &&
    (!current.done || extendsPart(current, piece.text))
  const part = isCurrent ? current : openPart(message, piece.form)
  const text = unsentText(part, piece.text)
  // Which tokens of a partly streamed text are missing is unknown.
  send(message, part, { ...piece, text, logprobs: part.sentChars === 0 ? piece.logprobs : null })
  part.done = true
}

export function annotate(message: Message, annotation: unknown): void {
  const { lane } = message
  message.annotationsSeen++
  const citation = readCitation(annotation)
  if (citation === null) return
  if (!message.isOpen) {
    const part = message.current ?? openPart(message, 'answer')
    // The block of this text was closed when its lane yielded.
    if (part.sentChars > 0) return
    openBlock(message, part)
  }
  appendEvent(lane, { type: 'citation', block: lane.block, citation })
}

/** Emits the parts, text and citations of the finished item that were not streamed. */
export function finishMessage(message: Message, item: JsonObject): void {
  announceMessage(message, item)
  const contents = readMessageContent(item)
  const isMissing = charsOf(contents.map(({ text }) => text)) > message.sentChars
  const { sentParts, annotationsSeen } = message
  let annotations = 0
  for (const [index, content] of contents.entries()) {
    if (isMissing && index >= sentParts) addPart(message, content)
    else if (isMissing && index === sentParts - 1) completeText(message, content)
    for (const annotation of content.annotations) {
      const isNew = annotations++ >= annotationsSeen
      if (isNew && message.isOpen && index >= sentParts - 1) annotate(message, annotation)
    }
  }
}

const noLogprobs: readonly TokenLogprob[] = []

function addPart(message: Message, piece: TextPiece): void {
  const part = openPart(message, piece.form)
  send(message, part, piece)
  part.done = true
}

function openPart(message: Message, form: TextForm): Part<TextForm> {
  closeBlock(message, true)
  message.lane.settled = false
  message.current = createPart(form)
  return message.current
}

function openBlock(message: Message, part: Part<TextForm>): void {
  const { lane, phase } = message
  message.isOpen = true
  beginBlock(lane, {
    type: 'text-start',
    block: lane.block,
    form: part.label,
    ...(phase === null ? {} : { phase }),
  })
}

function send(message: Message, part: Part<TextForm>, piece: TextPiece): void {
  const { text } = piece
  if (text === '') return
  if (!message.isOpen) openBlock(message, part)
  if (part.sentChars === 0) message.sentParts++
  message.sentChars += text.length
  recordSent(part, text)
  const { lane } = message
  const { block } = lane
  const logprobs = message.logprobs ? readLogprobs(piece.logprobs) : noLogprobs
  appendEvent(
    lane,
    logprobs.length === 0
      ? { type: 'text-delta', block, text }
      : { type: 'text-delta', block, text, logprobs },
  )
}

function closeBlock(message: Message, complete: boolean): void {
  const { lane } = message
  if (message.isOpen) appendEvent(lane, { type: 'text-end', block: lane.block, complete })
  message.isOpen = false
}
