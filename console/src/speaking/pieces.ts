/** A piece is one request: small, so that the first words are heard soon and no limit of a voice is met. */
const pieceCharsMax = 1_000
const firstCharsMax = 250

/** Divides texts into pieces between sentences, and too long sentences between words. */
export function toPieces(texts: readonly string[]): string[] {
  const pieces: string[] = []
  let piece = ''
  for (const sentence of texts.flatMap(toSentences).flatMap(divide)) {
    const charsMax = pieces.length === 0 ? firstCharsMax : pieceCharsMax
    if (piece !== '' && piece.length + sentence.length > charsMax) {
      pieces.push(piece.trim())
      piece = ''
    }
    piece += sentence
  }
  return [...pieces, piece.trim()].filter((one) => one !== '')
}

/** A text without an end gets one: a heading is not read into the sentence after it. */
function toSentences(text: string): string[] {
  const ended = /[\p{P}\p{S}]$/u.test(text) ? text : `${text}.`
  const segments = new Intl.Segmenter(undefined, { granularity: 'sentence' }).segment(`${ended}\n`)
  return [...segments].map(({ segment }) => segment)
}

function divide(sentence: string): string[] {
  const parts: string[] = []
  let rest = sentence
  while (rest.length > pieceCharsMax) {
    const space = rest.lastIndexOf(' ', pieceCharsMax)
    const end = space > 0 ? space : pieceCharsMax
    parts.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
  return [...parts, rest]
}
