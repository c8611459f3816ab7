import { type Chunk, viewOf } from './transport.ts'

/** Decodes UTF-8 from chunks that may be split inside a character. Drops a byte order mark. */
export class Utf8Reader {
  #decoder: TextDecoder | null = null
  /** Whether the decoder may hold a part of a character. */
  #isInCharacter = false
  #isFirst = true

  /** Most chunks end between two characters, and are decoded without the state of earlier ones. */
  read(chunk: Chunk): string {
    const { bytes, start, end } = chunk
    if (start === end) return ''
    const wasFirst = this.#isFirst
    this.#isFirst = false
    const wasInCharacter = this.#isInCharacter
    this.#isInCharacter = (bytes[end - 1] ?? 0) >= 0x80
    const mayBeMarked = wasFirst && (bytes[start] ?? 0) >= 0x80
    if (!wasInCharacter && !this.#isInCharacter && !mayBeMarked) {
      return bytes.toString('utf8', start, end)
    }
    // Past the start of the text, a mark is a character.
    this.#decoder ??= new TextDecoder('utf-8', { ignoreBOM: !wasFirst })
    return this.#decoder.decode(viewOf(chunk), streaming)
  }

  /** The replacement of a character that is not complete; otherwise empty. */
  readEnd(): string {
    return this.#decoder?.decode() ?? ''
  }
}

const streaming = { stream: true }
