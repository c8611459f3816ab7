import { createDocument, type DomElement, type DomNode } from '@mixmark-io/domino'

/** Properties that decide whether text can be seen. */
type Style = Readonly<Partial<Record<string, string>>>

type Rule = { readonly selector: string; readonly style: Style }

/** Rules times elements of a document, about two seconds; further rules are ignored. */
const matchesMax = 2_000_000
/** Rules without these cannot hide text. */
const relevant =
  /(?:^|[;\s-])(?:display|visibility|opacity|font-size|color|background|left|right|top|bottom|clip|clip-path|overflow|text-indent|transform|filter)\s*:/i
/** Text moved further than this leaves the page. */
const offPagePx = 500
const fontSizeMinPx = 2
const opacityMin = 0.05
const elementNode = 1
const textNode = 3

/**
 * Parses an HTML document and removes text that a browser would not show: hidden by attribute, by an
 * inline style or by a style sheet of the document, without size, off the page, or in the colour of
 * its background. Specificity is ignored: the last rule wins.
 */
export function visibleDocument(html: string): DomElement {
  const document = createDocument(html)
  const root = document.documentElement
  const sheets = Array.from(
    document.querySelectorAll('style'),
    ({ textContent }) => textContent ?? '',
  )
  const styles = new Map<DomElement, Style>()
  const rulesMax = matchesMax / (1 + document.querySelectorAll('*').length)
  for (const { selector, style } of sheets.flatMap(rulesOf).slice(0, rulesMax)) {
    for (const element of Array.from(select(root, selector))) {
      styles.set(element, { ...styles.get(element), ...style })
    }
  }
  const hasOtherSheets = document.querySelectorAll('link[rel~="stylesheet"]').length > 0
  const isHiddenText = (style: Style) => isInvisibleText(style, { hasOtherSheets })
  const clean = (element: DomElement, inherited: Style) => {
    const own = {
      ...presentationOf(element),
      ...styles.get(element),
      ...declarationsOf(element.getAttribute('style') ?? ''),
    }
    const style = { ...inherited, ...own }
    for (const child of Array.from(element.childNodes)) {
      if (child.nodeType === textNode && isHiddenText(style)) child.remove()
      if (!isElement(child)) continue
      clean(child, style)
    }
    if (element !== root && (element.hasAttribute('hidden') || isRemoved(own))) element.remove()
  }
  clean(root, {})
  return root
}

function isElement(node: DomNode): node is DomElement {
  return node.nodeType === elementNode
}

/** Rules outside of conditions such as `@media print`. */
function rulesOf(sheet: string): Rule[] {
  const flat = sheet
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/@[^{};]*(?:;|\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})/g, '')
  return [...flat.matchAll(/([^{}]{1,1000})\{([^{}]*)\}/g)]
    .filter(([, , body = '']) => relevant.test(body))
    .map(([, selector = '', body = '']) => ({
      selector: selector.trim(),
      style: declarationsOf(body),
    }))
}

function select(root: DomElement, selector: string): ArrayLike<DomElement> {
  try {
    return root.querySelectorAll(selector)
  } catch {
    // Selectors that the parser does not know, such as `::before`.
    return []
  }
}

function declarationsOf(body: string): Style {
  const entries = body.split(';').flatMap((declaration) => {
    const [name = '', ...value] = declaration.split(':')
    const text = value.join(':').replace(/!\s*important/i, '')
    const property = name.trim().toLowerCase()
    return value.length === 0 ? [] : [[alias[property] ?? property, text.trim().toLowerCase()]]
  })
  return Object.fromEntries(entries)
}

const alias: Readonly<Record<string, string>> = { 'background-color': 'background' }

/** Attributes of old documents. */
function presentationOf(element: DomElement): Style {
  const background = element.getAttribute('bgcolor')
  const color = element.tagName === 'FONT' ? element.getAttribute('color') : null
  const size = element.tagName === 'FONT' ? element.getAttribute('size') : null
  return {
    ...(background === null ? {} : { background: background.toLowerCase() }),
    ...(color === null ? {} : { color: color.toLowerCase() }),
    ...(size === '0' ? { 'font-size': '0' } : {}),
  }
}

/** With all of its content. */
function isRemoved(own: Style): boolean {
  const { display, opacity, position, left, top, clip, overflow, filter } = own
  if (display === 'none' || own['content-visibility'] === 'hidden') return true
  if (opacity !== undefined && numberOf(opacity) < opacityMin) return true
  if (filter !== undefined && /opacity\(0(?:\.0+)?%?\)/.test(filter)) return true
  if (/^(?:absolute|fixed|relative)$/.test(position ?? '')) {
    if ([left, top, own['right'], own['bottom']].some(isOffPage)) return true
    if (/^rect\((?:[01](?:px)?[\s,]*){4}\)$/.test(clip ?? '')) return true
  }
  if (/^inset\((?:50|100)%/.test(own['clip-path'] ?? '')) return true
  if (/translate[xy3d]*\(\s*-\d{4,}px|scale\(0(?:\.0+)?\)/.test(own['transform'] ?? '')) return true
  const isFlat = [own['height'], own['width'], own['max-height'], own['max-width']].some(
    (length) =>
      length !== undefined && numberOf(length) <= 1 && /^[\d.]+(?:px|em|rem)?$/.test(length),
  )
  return isFlat && /hidden|clip/.test(overflow ?? '')
}

/** By properties that content inherits and may override. */
function isInvisibleText(style: Style, { hasOtherSheets }: { hasOtherSheets: boolean }): boolean {
  const { visibility, color, background = '' } = style
  if (visibility === 'hidden' || visibility === 'collapse') return true
  const size = style['font-size']
  if (size !== undefined && /^[\d.]+(?:px|pt)?$/.test(size) && numberOf(size) < fontSizeMinPx)
    return true
  if (size !== undefined && /^0+(?:\.0+)?[a-z%]*$/.test(size)) return true
  if (isOffPage(style['text-indent'])) return true
  if (color === undefined) return false
  if (color === 'transparent' || /^rgba\((?:[^,]+,){3}\s*0(?:\.0+)?\)$/.test(color)) return true
  // A background of another style sheet may be dark.
  if (background === '') return !hasOtherSheets && rgbOf(color) === 'fff'
  return rgbOf(color) === rgbOf(background)
}

function isOffPage(length: string | undefined): boolean {
  const found = /^-([\d.]+)(px|em|rem|vw|vh|%|pt)?$/.exec(length ?? '')
  if (found === null) return false
  const px = found[2] === 'px' || found[2] === 'pt' || found[2] === undefined ? 1 : 16
  return Number(found[1]) * px >= offPagePx
}

function numberOf(text: string): number {
  const number = Number.parseFloat(text)
  return text.endsWith('%') ? number / 100 : number
}

/** Short hexadecimal form of white and of colours as they are written; others are compared as text. */
function rgbOf(color: string): string {
  const text = color.replace(/\s+/g, '')
  if (/^(?:white|#fff(?:fff)?(?:ff)?|rgba?\(255,255,255(?:,1)?\))$/.test(text)) return 'fff'
  if (/^(?:black|#000(?:000)?(?:ff)?|rgba?\(0,0,0(?:,1)?\))$/.test(text)) return '000'
  return text.replace(/^#(.)\1(.)\2(.)\3$/, '#$1$2$3')
}
