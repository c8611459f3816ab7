export type DocumentText = {
  readonly text: string
  /** The start of each page in characters; null: no pages. */
  readonly pages: readonly number[] | null
}

/** A picture of a page without text, as JPEG. */
export type PageImage = { readonly page: number; readonly content: Uint8Array }

export function hasText(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text)
}

/** Joins pages or slides. */
export function joinPages(pages: readonly string[]): DocumentText {
  const starts: number[] = []
  let text = ''
  for (const page of pages.map(normalizeText)) {
    if (text !== '' && page !== '') text += '\n\n'
    starts.push(text.length)
    text += page
  }
  return { text, pages: starts }
}

/**
 * Characters that nobody sees and models read: tags, variation selectors of the supplement, bidirectional
 * controls, soft hyphens, spaces of no width. Joiners stay, since scripts and emoji need them.
 */
export const invisible =
  /\u034f|[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e01ef}]/gu

/**
 * Composes characters, unifies line ends, and removes control and invisible characters, lone surrogates
 * and empty lines in series, so that the database accepts every text.
 */
export function normalizeText(text: string): string {
  return text
    .toWellFormed()
    .normalize('NFC')
    .replace(/\r\n?|\u2028|\u2029/g, '\n')
    .replace(/(?![\t\n])\p{Cc}/gu, '')
    .replace(invisible, '')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** A row of a Markdown table. */
export function tableRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replace(/\s+/g, ' ').trim()).join(' | ')} |`
}
