import { parseJson } from '#lib/json.ts'
import { createLru } from '#lib/lru.ts'

/** After this many messages without a match, the optimisation is disabled for the stream. */
const missesMax = 16

/**
 * Consecutive messages of a stream are usually the same JSON except for one text field. The JSON around
 * the text is cached, and of a message with the same prefix and suffix only the text is parsed. A decoder
 * is its own frame: a further object would be cold in cache at every event.
 */
export type TextFrame = {
  /** The JSON before and after the text; empty while none is known. */
  beforeText: string
  afterText: string
  missesLeft: number
}

/** Of a stream that has not begun. The first message is not learnt: many responses have only one. */
export const newTextFrame: Readonly<TextFrame> = {
  beforeText: '',
  afterText: '',
  missesLeft: missesMax + 1,
}

/** The text of a message that differs from the learnt one only in its text; otherwise null. */
export function readText(frame: TextFrame, json: string): string | null {
  const { beforeText: before, afterText: after } = frame
  if (before === '' || !json.startsWith(before) || !json.endsWith(after)) return null
  // The literal with its quotes must be exactly one JSON string.
  const literal = json.slice(before.length, json.length - after.length)
  if (!literal.startsWith('"') || !literal.endsWith('"')) return null
  const text = parseJson(literal)
  if (typeof text !== 'string') return null
  frame.missesLeft = missesMax
  return text
}

/** Caches the JSON around the text of this field, which must occur once. */
export function learnText(
  frame: TextFrame,
  json: string,
  { field, text }: { field: string; text: string },
): void {
  if (frame.missesLeft === 0) return
  frame.missesLeft -= 1
  if (frame.missesLeft === missesMax) return
  frame.beforeText = ''
  const key = `"${field}"`
  const keyAt = json.indexOf(key)
  if (keyAt === -1 || json.indexOf(key, keyAt + 1) !== -1) return
  jsonString.lastIndex = keyAt + key.length
  const literal = jsonString.exec(json)?.[1] ?? ''
  const before = json.slice(0, jsonString.lastIndex - literal.length)
  const after = json.slice(jsonString.lastIndex)
  // With escapes, the same key could occur a second time.
  if (parseJson(literal) !== text || before.includes('\\') || after.includes('\\')) return
  frame.beforeText = copyOf(before)
  frame.afterText = shared(after)
}

/** A string value after its key. */
const jsonString = /\s*:\s*("(?:[^"\\]|\\.)*")/y

const suffixesMax = 64
const suffixCharsMax = 1_024
/** What follows the text is the same in most streams; one string of them all stays in cache. */
const suffixes = createLru<string, string>(suffixesMax)

function shared(suffix: string): string {
  const known = suffixes.get(suffix)
  if (known !== undefined) return known
  const copy = copyOf(suffix)
  if (copy.length <= suffixCharsMax) suffixes.set(copy, copy)
  return copy
}

/** A substring would keep the whole upstream read in memory. */
function copyOf(text: string): string {
  return Buffer.from(text).toString()
}
