import { parseJson } from '#lib/json.ts'

/** After so many messages that were unlike the one before, a stream is read without further looks. */
const missesMax = 16

/**
 * Most messages of a stream are the same JSON but for a few characters of text. What stands around
 * the text is kept, and of a message with the same around it only the text is parsed; the rest of it
 * means again what it meant.
 */
export class TextFrame {
  #before = ''
  #after = ''
  #missesLeft = missesMax
  #isFirst = true

  /** Whether it is worth finding out the text of a message for `learn`. */
  get learns(): boolean {
    return this.#missesLeft > 0
  }

  /** The text of a message that is the last learnt one but for its text; null of every other one. */
  read(json: string): string | null {
    const before = this.#before
    if (before === '' || !json.startsWith(before) || !json.endsWith(this.#after)) return null
    // With its quotes: what is no JSON string as a whole is not the text alone.
    const literal = json.slice(before.length, json.length - this.#after.length)
    if (!literal.startsWith('"') || !literal.endsWith('"')) return null
    const text = parseJson(literal)
    if (typeof text !== 'string') return null
    this.#missesLeft = missesMax
    return text
  }

  /**
   * Keeps what a message has around the text of this field, which it must have but once, in place of
   * what was kept. The first message teaches nothing: many answers have no second one.
   */
  learn(json: string, field: string, text: string) {
    if (this.#isFirst) {
      this.#isFirst = false
      return
    }
    if (!this.learns) return
    this.#missesLeft -= 1
    this.#before = ''
    const key = `"${field}"`
    const keyAt = json.indexOf(key)
    if (keyAt === -1 || json.indexOf(key, keyAt + 1) !== -1) return
    jsonString.lastIndex = keyAt + key.length
    const literal = jsonString.exec(json)?.[1] ?? ''
    const before = json.slice(0, jsonString.lastIndex - literal.length)
    const after = json.slice(jsonString.lastIndex)
    // A key may be spelled with escapes, so that there is a second one of this name after all.
    if (parseJson(literal) !== text || before.includes('\\') || after.includes('\\')) return
    this.#before = copyOf(before)
    this.#after = copyOf(after)
  }
}

/** What follows a key. */
const jsonString = /\s*:\s*("(?:[^"\\]|\\.)*")/y

/** A part of a string keeps the whole of it in memory, here a read of the upstream. */
function copyOf(text: string): string {
  return Buffer.from(text).toString()
}
