import type { TextForm, TokenLogprob } from '#inference/events.ts'
import type { JsonObject } from '#lib/json.ts'
import { createPart, extendsPart, missingText, notePiece, opensNewPart, type Part } from './part.ts'
import { readCitation, readLogprobs, readMessageContent, readText } from './read.ts'
import { begin, createLane, type Lane, put, type Sequence } from './sequence.ts'

/** A message item: each of its parts becomes a text block. */
export type Message = {
  readonly kind: 'message'
  readonly lane: Lane
  /** Whether log probabilities are passed on. */
  readonly logprobs: boolean
  current: Part<TextForm> | null
  isOpen: boolean
  phase: string | null
  sentChars: number
  /** Parts that gave text, which is how the finished item's parts are told apart. */
  sentParts: number
  annotationsSeen: number
}

export type TextPiece = { form: TextForm; text: string; logprobs: unknown }

export function createMessage(sequence: Sequence, options: { logprobs: boolean }): Message {
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
 * Passes a delta on. It belongs to the current part, whatever index it carries: vLLM counts content
 * parts on from item to item, and others leave the number out.
 */
export function addText(message: Message, piece: TextPiece): void {
  const { current } = message
  const goesOn = current !== null && current.label === piece.form && !current.done
  const part = goesOn ? current : openPart(message, piece.form)
  send(message, part, piece)
}

/** Takes the whole text of a part and passes on what was not streamed of it. */
export function completeText(message: Message, piece: TextPiece): void {
  const { current } = message
  const isCurrent =
    current !== null &&
    current.label === piece.form &&
    (!current.done || extendsPart(current, piece.text))
  const part = isCurrent ? current : openPart(message, piece.form)
  const text = missingText(part, piece.text)
  // Of a part that was streamed in part only, nobody knows which tokens are the missing ones.
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
    // Of a text that gave up the floor, no more is told.
    if (part.sentChars > 0) return
    openBlock(message, part)
  }
  put(lane, { type: 'citation', block: lane.block, citation })
}

/** Passes on what the finished item has beyond that which was streamed: parts, text, citations. */
export function finishMessage(message: Message, item: JsonObject): void {
  announceMessage(message, item)
  const contents = readMessageContent(item)
  const chars = contents.reduce((sum, { text }) => sum + text.length, 0)
  const isMissing = chars > message.sentChars
  const { sentParts, annotationsSeen } = message
  let annotations = 0
  for (const [place, content] of contents.entries()) {
    if (isMissing && place >= sentParts) addPart(message, content)
    else if (isMissing && place === sentParts - 1) completeText(message, content)
    for (const annotation of content.annotations) {
      const isNew = annotations++ >= annotationsSeen
      if (isNew && message.isOpen && place >= sentParts - 1) annotate(message, annotation)
    }
  }
}

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
  begin(lane, {
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
  notePiece(part, text)
  const { lane } = message
  const { block } = lane
  const logprobs: TokenLogprob[] | null = message.logprobs ? readLogprobs(piece.logprobs) : null
  put(
    lane,
    logprobs === null
      ? { type: 'text-delta', block, text }
      : { type: 'text-delta', block, text, logprobs },
  )
}

function closeBlock(message: Message, complete: boolean): void {
  const { lane } = message
  if (message.isOpen) put(lane, { type: 'text-end', block: lane.block, complete })
  message.isOpen = false
}
