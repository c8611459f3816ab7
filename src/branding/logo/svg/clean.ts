import { isAllowed } from './allow-list.ts'
import type { ParsedSvg, SvgElement } from './parse.ts'
import type { Removals } from './removals.ts'
import {
  readDeclarations,
  readStyleSheet,
  type StyleSheet,
  withoutComments,
} from './style-sheet.ts'

/**
 * The same tree with attributes of the allow-list alone. What style sheets and `style` attributes say
 * becomes attributes, so that no CSS is left in a drawing.
 */
export function cleanSvg({ root, styleSheets }: ParsedSvg, removals: Removals): SvgElement {
  return cleanElement(root, readStyleSheet(styleSheets.join('\n'), removals), removals)
}

function cleanElement(element: SvgElement, styles: StyleSheet, removals: Removals): SvgElement {
  return {
    name: element.name,
    attributes: cleanAttributes(element, styles, removals),
    children: element.children.map((child) =>
      typeof child === 'string' ? child : cleanElement(child, styles, removals),
    ),
  }
}

function cleanAttributes(
  { name, attributes }: SvgElement,
  styles: StyleSheet,
  removals: Removals,
): Map<string, string> {
  const cleaned = new Map<string, string>()
  for (const [attribute, value] of attributes) {
    if (attribute === 'style' || attribute === 'class') continue
    if (isAllowed(name, attribute, value)) cleaned.set(attribute, value)
    else removals.add(`${attribute} of <${name}>`)
  }
  const classes = new Set((attributes.get('class') ?? '').split(/\s+/))
  const found = styles({ name, id: attributes.get('id'), classes: [...classes] })
  for (const [property, value] of found) cleaned.set(property, value)
  const own = withoutComments(attributes.get('style') ?? '')
  for (const [property, value] of readDeclarations(own, `style of <${name}>`, removals)) {
    cleaned.set(property, value)
  }
  return cleaned
}
