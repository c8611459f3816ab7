import { signal } from '@preact/signals'
import type { MarkedToken, Token } from 'marked'

type Lex = (text: string) => Token[]

/** The parser is larger than any page: it is loaded beside the page that uses it. */
const lex = signal<Lex | null>(null)
void import('marked').then(
  ({ Lexer }) => {
    lex.value = (text) => Lexer.lex(text, { gfm: true, breaks: true })
  },
  // Texts stay as they are.
  () => {},
)

/** The blocks of a text; null while the parser is loaded, and for a text that it cannot read. */
export function blocksOf(text: string): MarkedToken[] | null {
  if (lex.value === null) return null
  try {
    return lex.value(text) as MarkedToken[]
  } catch {
    // Nested more deeply than the stack.
    return null
  }
}

/** The words of a text, block by block, as somebody would read it out: no code, no marks. */
export function wordsOf(text: string): string[] {
  const blocks = blocksOf(text)
  return (blocks === null ? [text] : blocks.flatMap(wordsOfBlock))
    .map((words) => decodeEntities(words).trim())
    .filter((words) => words !== '')
}

function wordsOfBlock(block: MarkedToken): string[] {
  switch (block.type) {
    case 'code':
    case 'space':
    case 'hr':
    case 'def':
    case 'html':
      return []
    case 'list':
      return block.items.flatMap((item) => (item.tokens as MarkedToken[]).flatMap(wordsOfBlock))
    case 'blockquote':
      return (block.tokens as MarkedToken[]).flatMap(wordsOfBlock)
    case 'table':
      return [block.header, ...block.rows].map((row) =>
        row.map((cell) => inlineWords(cell.tokens)).join(', '),
      )
    default:
      return [inlineWords([block])]
  }
}

function inlineWords(tokens: readonly Token[]): string {
  return (tokens as readonly MarkedToken[])
    .map((token) => {
      if (token.type === 'br') return '\n'
      if (token.type === 'html' || token.type === 'checkbox') return ''
      if ('tokens' in token && token.tokens !== undefined) return inlineWords(token.tokens)
      return 'text' in token ? token.text : ''
    })
    .join('')
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
}

/** Models write the entities of HTML rarely, and hardly any but these. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,6})|(\w{2,6}));/g, (whole, code?: string, name?: string) => {
    if (code !== undefined) return String.fromCodePoint(Math.min(Number(code), 0x10ffff))
    return entities[name ?? ''] ?? whole
  })
}
