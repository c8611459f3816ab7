import { eventFrame, toLine, withoutLineSeparators } from '#http/frame-text.ts'
import { type RelayFrame, textOfFrame } from '#inference/events.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { type DeltaType, deltaFields, type MessageFold } from './fold.ts'
import type { ContentBlock, MessageEnd, MessageObject } from './message.ts'

export const pingFrame = eventFrame('ping', { type: 'ping' })

const afterDeltaText = '}}\n\n'

/** The delta type of each kind of block. */
const deltaTypes: Readonly<Record<string, DeltaType>> = {
  text: 'text_delta',
  thinking: 'thinking_delta',
  tool_use: 'input_json_delta',
}

/**
 * The output of a renderer. Methods return server-sent events, or empty strings when a fold collects
 * the message. One block is open at a time.
 */
export class MessageSink {
  /** Collects the message of a response without streaming. */
  readonly #fold: MessageFold | null
  /** The type of the open block. */
  #open: string | null = null
  #index = 0
  /** The part of a delta frame before its text, created once per block, and its delta type. */
  #headType: DeltaType | null = null
  #head = ''
  #nextIndex = 0

  constructor(fold: MessageFold | null) {
    this.#fold = fold
  }

  begin(message: MessageObject): string {
    return this.#write({ type: 'message_start', message })
  }

  /** Opens a block: empty if deltas follow, otherwise complete. */
  start(block: ContentBlock): string {
    this.#openBlock(block.type, this.#nextIndex)
    return this.#write({ type: 'content_block_start', index: this.#index, content_block: block })
  }

  /** Hot path: the JSON of a delta is precomputed except for its text. */
  delta(type: DeltaType, text: string): string {
    if (this.#open === null) return ''
    if (this.#fold !== null) {
      this.#fold.grow({ type, [deltaFields[type]]: text })
      return ''
    }
    if (this.#headType !== type) {
      this.#headType = type
      this.#head = deltaHead(this.#index, type)
    }
    return this.#head + toLine(text) + afterDeltaText
  }

  cite(citation: object): string {
    if (this.#open === null) return ''
    const delta = { type: 'citations_delta', citation }
    return this.#write({ type: 'content_block_delta', index: this.#index, delta })
  }

  /** Ends the open block, if any. */
  stop(): string {
    if (this.#open === null) return ''
    this.#open = null
    return this.#write({ type: 'content_block_stop', index: this.#index })
  }

  isOpen(): boolean {
    return this.#open !== null
  }

  end(end: MessageEnd, usage: object, further: object = {}): string {
    return (
      this.#write({ type: 'message_delta', delta: end, usage, ...further }) +
      this.#write({ type: 'message_stop' })
    )
  }

  /** Writes frames of an upstream of the same protocol. */
  relay(frames: readonly RelayFrame[]): string {
    let written = ''
    for (const frame of frames) {
      const { payload } = frame
      const { type } = payload
      if (type !== 'content_block_delta') this.#follow(payload)
      if (this.#fold !== null) this.#fold.add(payload)
      else written += `event: ${type}\ndata: ${withoutLineSeparators(textOfFrame(frame))}\n\n`
    }
    return written
  }

  fail(body: object): string {
    return this.#fold === null ? eventFrame('error', body) : ''
  }

  /** An empty delta for the open block as a heartbeat; empty if the block has no deltas. */
  emptyDelta(): string {
    const type = deltaTypes[this.#open ?? '']
    return type === undefined ? '' : this.delta(type, '')
  }

  #write(payload: { readonly type: string; readonly [field: string]: unknown }): string {
    if (this.#fold === null) return eventFrame(payload.type, payload)
    this.#fold.add(payload)
    return ''
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

/** A message may begin with complete blocks. */
function lengthOf(content: unknown): number {
  return Array.isArray(content) ? content.length : 0
}

function deltaHead(index: number, type: DeltaType): string {
  const json = toLine({ type: 'content_block_delta', index, delta: { type } })
  return `event: content_block_delta\ndata: ${json.slice(0, -2)},"${deltaFields[type]}":`
}
