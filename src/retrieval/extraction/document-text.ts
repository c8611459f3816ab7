/** What a document says, and where its pages begin in it. */
export type DocumentText = {
  readonly text: string
  /** Where each page begins, in characters; null where there are no pages. */
  readonly pages: readonly number[] | null
}

/** Pages, slides and the like, one below the other. */
export function joinPages(pages: readonly string[]): DocumentText {
  const starts: number[] = []
  let text = ''
  for (const page of pages.map(tidyText)) {
    if (text !== '' && page !== '') text += '\n\n'
    starts.push(text.length)
    text += page
  }
  return { text, pages: starts }
}

/**
 * One way to write each text: composed characters, plain line ends, no control characters, halves of
 * characters or long gaps. What a database refuses is no longer in it.
 */
export function tidyText(text: string): string {
  return text
    .toWellFormed()
    .normalize('NFC')
    .replace(/\r\n?|\u2028|\u2029/g, '\n')
    .replace(/(?![\t\n])[\p{Cc}\ufeff]/gu, '')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** A row of a table, as Markdown has it. */
export function tableRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replace(/\s+/g, ' ').trim()).join(' | ')} |`
}
