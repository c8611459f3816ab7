import TurndownService from 'turndown'
import { tableRow } from './document-text.ts'

/** What a browser does not show as text. */
const hidden = ['script', 'style', 'noscript', 'template', 'iframe', 'object'] as const

/** What an HTML document says, as Markdown: headings, lists and tables stay what they are. */
export function htmlToText(html: string): string {
  const service = new TurndownService({
    headingStyle: 'atx',
    hr: '---',
    bulletListMarker: '-',
    codeBlockStyle: 'fenced',
  })
  service.remove([...hidden])
  service.addRule('drawings', { filter: (node) => isDrawing(node.nodeName), replacement: () => '' })
  // An address within the page, or one that holds a whole picture, tells a reader nothing.
  service.addRule('links', { filter: 'a', replacement: linkText })
  service.addRule('images', {
    filter: 'img',
    replacement: (_text, node) => attributeOf(node, 'alt'),
  })
  service.addRule('cells', { filter: ['td', 'th'], replacement: (text) => `${cell(text)}\u0000` })
  service.addRule('rows', {
    filter: 'tr',
    replacement: (text) => `\n${tableRow(text.split('\u0000').slice(0, -1))}`,
  })
  service.addRule('table parts', {
    filter: ['thead', 'tbody', 'tfoot'],
    replacement: (text) => text,
  })
  service.addRule('tables', { filter: 'table', replacement: (text) => `\n\n${text}\n\n` })
  // Marks before signs that mean something in Markdown would only be in the way of a search.
  service.escape = (text) => text
  return service.turndown(html.replaceAll('\u0000', ''))
}

function linkText(text: string, node: TurndownService.Node): string {
  const address = attributeOf(node, 'href')
  const isTelling = /^https?:\/\//i.test(address) && text.trim() !== '' && text !== address
  return isTelling ? `[${text}](${address})` : text
}

function attributeOf(node: TurndownService.Node, name: string): string {
  return 'getAttribute' in node ? (node.getAttribute(name) ?? '') : ''
}

function isDrawing(name: string): boolean {
  return ['svg', 'canvas', 'math'].includes(name.toLowerCase())
}

function cell(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
