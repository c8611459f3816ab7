import { eventFrame, toLine } from '#http/frame-text.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import {
  type ContentBlock,
  type DeltaType,
  deltaFields,
  type MessageEnd,
  type MessageObject,
  type MessageSink,
} from './message.ts'
import type { RelayedFrame } from './relayed-frames.ts'

export const pingFrame = eventFrame('ping', { type: 'ping' })

const afterDeltaText = '}}\n\n'

/** The delta type of each kind of block. */
const deltaTypes: Readonly<Record<string, DeltaType>> = {
  text: 'text_delta',
  thinking: 'thinking_delta',
  tool_use: 'input_json_delta',
}

/** Writes one message as server-sent events. */
export class FrameSink implements MessageSink {
  /** The type of the open block. */
  #open: string | null = null
  #index = 0
  /** The part of a delta frame before its text, created once per block, and its delta type. */
  #headType: DeltaType | null = null
  #head = ''
  #nextIndex = 0

  begin(message: MessageObject): string {
    return frame('message_start', { message })
  }

  start(block: ContentBlock): string {
    this.#openBlock(block.type, this.#nextIndex)
    return frame('content_block_start', { index: this.#index, content_block: block })
  }

  /** Hot path: the JSON of a delta is precomputed except for its text. */
  delta(type: DeltaType, text: string): string {
    if (this.#open === null) return ''
    if (this.#headType !== type) {
      this.#headType = type
      this.#head = deltaHead(this.#index, type)
    }
    return this.#head + toLine(text) + afterDeltaText
  }

  cite(citation: object): string {
    if (this.#open === null) return ''
    const delta = { type: 'citations_delta', citation }
    return frame('content_block_delta', { index: this.#index, delta })
  }

  stop(): string {
    if (this.#open === null) return ''
    this.#open = null
    return frame('content_block_stop', { index: this.#index })
  }

  isOpen(): boolean {
    return this.#open !== null
  }

  end(end: MessageEnd, usage: object): string {
    return frame('message_delta', { delta: end, usage }) + frame('message_stop', {})
  }

  relay(frames: readonly RelayedFrame[]): string {
    let written = ''
    for (const { payload, data } of frames) {
      const { type } = payload
      if (type !== 'content_block_delta') this.#follow(payload)
      written += `event: ${type}\ndata: ${data}\n\n`
    }
    return written
  }

  fail(body: object): string {
    return eventFrame('error', body)
  }

  /** An empty delta for the open block as a heartbeat; empty if the block has no deltas. */
  emptyDelta(): string {
    const type = deltaTypes[this.#open ?? '']
    return type === undefined ? '' : this.delta(type, '')
  }

  #follow({ type, index, content_block: block, message }: JsonObject) {
    if (type === 'message_start') this.#nextIndex = lengthOf(asRecord(message)['content'])
    if (type === 'content_block_stop') this.#open = null
    if (type !== 'content_block_start' || typeof index !== 'number') return
    this.#openBlock(String(asRecord(block)['type']), index)
  }

  #openBlock(type: string, index: number) {
    this.#open = type
    this.#index = index
    this.#headType = null
    this.#nextIndex = index + 1
  }
}

function frame(type: string, fields: object): string {
  return eventFrame(type, { type, ...fields })
}

/** A message may begin with complete blocks. */
function lengthOf(content: unknown): number {
  return Array.isArray(content) ? content.length : 0
}

function deltaHead(index: number, type: DeltaType): string {
  const json = toLine({ type: 'content_block_delta', index, delta: { type } })
  return `event: content_block_delta\ndata: ${json.slice(0, -2)},"${deltaFields[type]}":`
}
