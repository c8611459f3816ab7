import type { OwnFrame } from './relayed-frames.ts'

/** One block of a message's `content`. */
export type ContentBlock = { readonly type: string; readonly [field: string]: unknown }

/** The Message object: streamed in pieces, or answered as a whole. */
export type MessageObject = {
  readonly id: string
  readonly type: 'message'
  readonly role: 'assistant'
  /** The name that the caller used. */
  readonly model: string
  readonly content: readonly ContentBlock[]
  readonly usage: object
  /** What an upstream of the same protocol says beyond that. */
  readonly [field: string]: unknown
} & Omit<MessageEnd, 'stop_reason'> & { readonly stop_reason: StopReason | null }

export type StopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'stop_sequence'
  | 'tool_use'
  | 'pause_turn'
  | 'refusal'
  | 'model_context_window_exceeded'

/** Why a message ended: the `delta` of `message_delta`, and the same fields of the message. */
export type MessageEnd = {
  readonly stop_reason: StopReason
  readonly stop_sequence: string | null
  readonly stop_details: StopDetails | null
  readonly container: null
}

type StopDetails = {
  readonly type: 'refusal'
  readonly category: null
  readonly explanation: string | null
}

/** A message that has nothing yet. */
export function emptyMessage(head: { id: string; model: string; usage: object }): MessageObject {
  return {
    id: head.id,
    type: 'message',
    role: 'assistant',
    model: head.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: head.usage,
  }
}

/** The deltas that a block may have, each with the field that carries its text. */
export const deltaFields = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
} as const

export type DeltaType = keyof typeof deltaFields

/**
 * Where a message goes: onto the wire, or into the object that is answered without streaming. Both
 * are told the same, so the two cannot differ. One block is open at a time. Methods return SSE
 * frames; what makes an object returns empty texts.
 */
export type MessageSink = {
  begin(message: MessageObject): string
  /** Opens a block: as a shell that deltas fill, or whole where its kind has none. */
  start(block: ContentBlock): string
  delta(type: DeltaType, text: string): string
  cite(citation: object): string
  /** Ends the block that is open, if any is. */
  stop(): string
  isOpen(): boolean
  end(end: MessageEnd, usage: object): string
  /** Frames of the same protocol, which are written as they are. */
  relay(frames: readonly OwnFrame[]): string
  fail(body: object): string
}
