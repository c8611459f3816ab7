/**
 * The beginning of a caption that will not change: the words that two successive hypotheses agree
 * on. What was once called stable stays: where a later hypothesis has other words there (or fewer,
 * as when a fresh engine begins anew), the stable ones are shown in their place.
 */
export type StablePrefix = {
  /** The text to show and its stable beginning, which never shrinks and always ends with a word. */
  take(text: string): { readonly text: string; readonly stableText: string }
  reset(): void
}

export function createStablePrefix(): StablePrefix {
  let stable: readonly string[] = []
  let previous: readonly string[] = []
  return {
    take(text) {
      const words = wordsOf(text)
      // The same words again are no second opinion: many engines repeat what they last said.
      if (words.join(' ') !== previous.join(' ')) {
        const agreed = words.findIndex((word, index) => word !== previous[index])
        const count = agreed < 0 ? words.length : agreed
        if (count > stable.length) stable = [...stable, ...words.slice(stable.length, count)]
        previous = words
      }
      const shown = [...stable, ...words.slice(stable.length)]
      return { text: shown.join(' '), stableText: stable.join(' ') }
    },
    reset() {
      stable = []
      previous = []
    },
  }
}

export function wordsOf(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}
