import { TextFrame } from '#inference/text-frame.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'

/** Pieces of text that follow one another and look alike: of each only the text is parsed. */
export class PlainDeltas {
  readonly #frame = new TextFrame()
  /** The block that the frame is of. */
  #index = -1
  /** Whether the last message was for that block, so that another one only goes on with it. */
  #goesOn = false

  /** The payload of a message that goes on like the one before; null of every other one. */
  read(data: string): JsonObject | null {
    const text = this.#goesOn ? this.#frame.read(data) : null
    this.#goesOn = text !== null
    return text === null ? null : plainDelta(this.#index, text)
  }

  /** Remembers what a piece of text looks like; to be told of what goes out as it came. */
  learn(payload: JsonObject, data: string) {
    const plain = readPlainDelta(payload)
    if (plain === null) return
    if (this.#frame.learns) {
      this.#index = plain.index
      this.#frame.learn(data, 'text', plain.text)
    }
    this.#goesOn = plain.index === this.#index
  }
}

/** The text, and the number of its block, of a payload that says nothing else. */
function readPlainDelta(payload: JsonObject): { index: number; text: string } | null {
  const { type, index, delta } = payload
  if (type !== 'content_block_delta' || typeof index !== 'number' || !isRecord(delta)) return null
  const { type: deltaType, text } = delta
  if (deltaType !== 'text_delta' || typeof text !== 'string') return null
  const saysMore = Object.keys(payload).length > 3 || Object.keys(delta).length > 2
  return saysMore ? null : { index, text }
}

function plainDelta(index: number, text: string): JsonObject {
  return { type: 'content_block_delta', index, delta: { type: 'text_delta', text } }
}
