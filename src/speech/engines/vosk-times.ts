import type { Word } from '#speech/engine.ts'
import { moveWords } from './words.ts'

/**
 * Places a Vosk server's words on the timeline of the session. Servers in use count on after a
 * reset; older ones begin again at zero. Which one it is shows in the first words that could not
 * be right the other way.
 */
export type VoskTimes = {
  /** Words of a reply to the audio until `untilMs`. */
  place(words: readonly Word[], untilMs: number): readonly Word[]
  /** The recogniser was reset here. */
  reset(atMs: number): void
}

/** Word times are rounded to 30 ms, and reach over the frame that they were heard in. */
const slackMs = 200

export function createVoskTimes(): VoskTimes {
  let resetMs = 0
  let startsAgain: boolean | null = null
  return {
    place(words, untilMs) {
      const first = words[0]
      const last = words.at(-1)
      if (resetMs === 0 || first === undefined || last === undefined) return words
      if (startsAgain === null && first.startMs < resetMs - slackMs) startsAgain = true
      if (startsAgain === null && last.endMs + resetMs > untilMs + slackMs) startsAgain = false
      return startsAgain === true ? moveWords(words, resetMs) : words
    },
    reset(atMs) {
      resetMs = atMs
    },
  }
}
