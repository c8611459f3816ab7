import type { RelayedFrame } from './relayed-frames.ts'

/** One block of a message's `content`. */
export type ContentBlock = { readonly type: string; readonly [field: string]: unknown }

/** The Message object. */
export type MessageObject = {
  readonly id: string
  readonly type: 'message'
  readonly role: 'assistant'
  /** The name that the client used. */
  readonly model: string
  readonly content: readonly ContentBlock[]
  readonly usage: object
  /** Additional fields of an upstream of the same protocol. */
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

/** Why a message ended: the `delta` of `message_delta`, and fields of the message. */
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

/** A message without content. */
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

/** The types of block deltas, with the field of their text. */
export const deltaFields = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
} as const

export type DeltaType = keyof typeof deltaFields

/**
 * The output of a renderer: SSE frames, or the complete Message object. Both get the same calls, so
 * they cannot differ. One block is open at a time. Methods return SSE frames, or empty strings when
 * building an object.
 */
export type MessageSink = {
  begin(message: MessageObject): string
  /** Opens a block: empty if deltas follow, otherwise complete. */
  start(block: ContentBlock): string
  delta(type: DeltaType, text: string): string
  cite(citation: object): string
  /** Ends the open block, if any. */
  stop(): string
  isOpen(): boolean
  end(end: MessageEnd, usage: object): string
  /** Writes frames of an upstream of the same protocol. */
  relay(frames: readonly RelayedFrame[]): string
  fail(body: object): string
}
