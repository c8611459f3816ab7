import { foldText } from '#lib/fold-text.ts'

/** Runs of scripts without spaces between words; PostgreSQL would take a whole run as one word. */
const unspacedRun =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々〆]+/gu

/** The words of a passage for full text search: unspaced runs as characters and pairs of characters. */
export function indexedWords(text: string): string {
  return foldText(text).replace(unspacedRun, (run) => ` ${[...run, ...pairsOf(run)].join(' ')} `)
}

/** The words of a query: unspaced runs as pairs, so that a part of a run is found within it. */
export function queriedWords(text: string): string {
  return foldText(text).replace(unspacedRun, (run) => {
    const pairs = pairsOf(run)
    return ` ${(pairs.length === 0 ? [run] : pairs).join(' ')} `
  })
}

function pairsOf(run: string): string[] {
  const signs = [...run]
  return signs.slice(1).map((sign, index) => `${signs[index]}${sign}`)
}
