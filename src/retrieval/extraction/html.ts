import TurndownService from 'turndown'
import { tableRow } from './document-text.ts'
import type { Gaps } from './gaps.ts'
import { visibleDocument } from './visible-html.ts'

/** Elements without visible text. */
const hiddenElements = ['script', 'style', 'noscript', 'template', 'iframe', 'object'] as const

/** The visible text of an HTML document as Markdown. */
export function htmlToText(html: string, gaps?: Gaps): string {
  const service = new TurndownService({
    headingStyle: 'atx',
    hr: '---',
    bulletListMarker: '-',
    codeBlockStyle: 'fenced',
  })
  service.remove([...hiddenElements])
  service.addRule('drawings', { filter: (node) => isDrawing(node.nodeName), replacement: () => '' })
  // Fragments and data URLs carry no meaning.
  service.addRule('links', { filter: 'a', replacement: linkText })
  service.addRule('images', {
    filter: 'img',
    replacement(_text, node) {
      gaps?.add('images_skipped')
      return attributeOf(node, 'alt')
    },
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
  // Escapes would interfere with searches.
  service.escape = (text) => text
  return service.turndown(visibleDocument(html.replaceAll('\u0000', '')))
}

function linkText(text: string, node: TurndownService.Node): string {
  const address = attributeOf(node, 'href')
  const isUseful = /^https?:\/\//i.test(address) && text.trim() !== '' && text !== address
  return isUseful ? `[${text}](${address})` : text
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
