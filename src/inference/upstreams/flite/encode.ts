/** A longer sentence is divided between words, so that the first audio comes soon. */
const sentenceCharsMax = 400

/**
 * The sentences of a text, in letters that the voices know. Sentences without a letter or digit are left
 * out: they have no sound.
 */
export function splitSentences(text: string): readonly string[] {
  const segments = new Intl.Segmenter('en', { granularity: 'sentence' }).segment(toAscii(text))
  return [...segments]
    .flatMap(({ segment }) => divide(segment.replace(/\s+/g, ' ').trim()))
    .filter((sentence) => /[a-z0-9]/i.test(sentence))
}

function divide(sentence: string): string[] {
  const parts: string[] = []
  let rest = sentence
  while (rest.length > sentenceCharsMax) {
    const space = rest.lastIndexOf(' ', sentenceCharsMax)
    const end = space > 0 ? space : sentenceCharsMax
    parts.push(rest.slice(0, end))
    rest = rest.slice(end).trimStart()
  }
  return [...parts, rest]
}

/** The voices read ASCII: accents are dropped, and typographic signs become plain ones. */
function toAscii(text: string): string {
  return text
    .replace(/[‘’]/g, "'")
    .replace(/[“”]/g, '"')
    .replace(/[–—]/g, ' - ')
    .replace(/…/g, '...')
    .replace(/ß/g, 'ss')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\t\n\x20-\x7e]/g, ' ')
}
