import { parseJson } from '#lib/json.ts'

/** After this many messages without a match, the optimisation is disabled for the stream. */
const missesMax = 16

/**
 * Consecutive messages of a stream are usually the same JSON except for one text field. The JSON around
 * the text is cached, and of a message with the same prefix and suffix only the text is parsed.
 */
export class TextFrame {
  #before = ''
  #after = ''
  #missesLeft = missesMax
  #isFirst = true

  /** Whether `learn` should be called. */
  get learns(): boolean {
    return this.#missesLeft > 0
  }

  /** Makes the next message one without a match. */
  forget() {
    this.#before = ''
  }

  /** The text of a message that differs from the learnt one only in its text; otherwise null. */
  read(json: string): string | null {
    const before = this.#before
    if (before === '' || !json.startsWith(before) || !json.endsWith(this.#after)) return null
    // The literal with its quotes must be exactly one JSON string.
    const literal = json.slice(before.length, json.length - this.#after.length)
    if (!literal.startsWith('"') || !literal.endsWith('"')) return null
    const text = parseJson(literal)
    if (typeof text !== 'string') return null
    this.#missesLeft = missesMax
    return text
  }

  /**
   * Caches the JSON around the text of this field, which must occur once. The first message is not
   * learnt: many responses have only one.
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
    // With escapes, the same key could occur a second time.
    if (parseJson(literal) !== text || before.includes('\\') || after.includes('\\')) return
    this.#before = copyOf(before)
    this.#after = copyOf(after)
  }
}

/** A string value after its key. */
const jsonString = /\s*:\s*("(?:[^"\\]|\\.)*")/y

/** A substring would keep the whole upstream read in memory. */
function copyOf(text: string): string {
  return Buffer.from(text).toString()
}
