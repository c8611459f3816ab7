import { invalidSvg, logoBytesMax } from '../image.ts'
import { isAllowed, svgNamespace, targetOf } from './allow-list.ts'
import { parseSvg, type Removals, type SvgElement } from './parse.ts'
import {
  readDeclarations,
  readStyleSheet,
  type StyleSheet,
  withoutComments,
} from './style-sheet.ts'

export type SanitizedSvg = {
  /** A newly serialised document. */
  readonly svg: string
  readonly width: number | null
  readonly height: number | null
  readonly sanitized: readonly string[]
}

/**
 * Rebuilds an SVG from allow-listed elements and attributes only. Throws `unsupported_image_type` for
 * anything that is not an SVG, and `invalid_svg` for a malformed or too expensive one.
 */
export function sanitizeSvg(text: string): SanitizedSvg {
  const removals = createRemovals()
  const { root, styleSheets } = parseSvg(text, removals)
  const styles = readStyleSheet(styleSheets.join('\n'), removals)
  const sanitized = sanitizeElement(root, styles, removals)
  checkDrawingCost(sanitized)
  const parts: string[] = []
  serialize(sanitized, parts)
  const svg = parts.join('').replace('<svg', `<svg xmlns="${svgNamespace}"`)
  if (Buffer.byteLength(svg) > logoBytesMax) {
    throw invalidSvg('The SVG is too long once its styles are inlined')
  }
  return { svg, ...sizeOf(sanitized), sanitized: removals.list() }
}

const removalKindsMax = 100
const removalCharsMax = 80

function createRemovals(): Removals & { list(): readonly string[] } {
  const kinds = new Set<string>()
  let isTruncated = false
  return {
    add(description) {
      const kind = description.slice(0, removalCharsMax)
      if (kinds.size < removalKindsMax) kinds.add(kind)
      else isTruncated ||= !kinds.has(kind)
    },
    list: () => [...kinds, ...(isTruncated ? ['and more'] : [])],
  }
}

/** Style sheets and `style` attributes become presentation attributes, so that no CSS is left. */
function sanitizeElement(element: SvgElement, styles: StyleSheet, removals: Removals): SvgElement {
  return {
    name: element.name,
    attributes: sanitizeAttributes(element, styles, removals),
    children: element.children.map((child) =>
      typeof child === 'string' ? child : sanitizeElement(child, styles, removals),
    ),
  }
}

function sanitizeAttributes(
  { name, attributes }: SvgElement,
  styles: StyleSheet,
  removals: Removals,
): Map<string, string> {
  const sanitized = new Map<string, string>()
  for (const [attribute, value] of attributes) {
    if (attribute === 'style' || attribute === 'class') continue
    if (isAllowed(name, attribute, value)) sanitized.set(attribute, value)
    else removals.add(`${attribute} of <${name}>`)
  }
  const classes = new Set((attributes.get('class') ?? '').split(/\s+/))
  const declarations = styles({ name, id: attributes.get('id'), classes: [...classes] })
  for (const [property, value] of declarations) sanitized.set(property, value)
  const inline = withoutComments(attributes.get('style') ?? '')
  for (const [property, value] of readDeclarations(inline, `style of <${name}>`, removals)) {
    sanitized.set(property, value)
  }
  return sanitized
}

/**
 * The number of elements a browser may draw. A few lines of nested references, or of patterns filled
 * with patterns, amount to billions.
 */
const drawnElementsMax = 200_000
const paintAttributes = ['fill', 'stroke']
const effectAttributes = ['clip-path', 'mask', 'filter']
const referenceDepthMax = 32

/** Throws `invalid_svg` for circular references and for a drawing that takes too long to render. */
function checkDrawingCost(root: SvgElement): void {
  const targets = new Map<string, SvgElement>()
  collectTargets(root, targets)
  const known = new Map<string, number>()
  const open = new Set<string>()

  function costOfTarget(id: string | undefined): number {
    const target = id === undefined ? undefined : targets.get(id)
    if (id === undefined || target === undefined) return 0
    const cost = known.get(id)
    if (cost !== undefined) return cost
    if (open.has(id)) throw invalidSvg(`The SVG element "${id}" refers to itself`)
    if (open.size === referenceDepthMax) {
      throw invalidSvg(`SVG references may be nested at most ${referenceDepthMax} deep`)
    }
    open.add(id)
    const computed = costOf(target)
    open.delete(id)
    known.set(id, computed)
    return computed
  }

  function costOf({ name, attributes, children }: SvgElement): number {
    const content = children.reduce(
      (sum, child) => sum + (typeof child === 'string' ? 0 : costOf(child)),
      1 + costOfTarget(attributes.get('href')?.slice(1)),
    )
    const costOfAll = (names: readonly string[]) =>
      names.reduce((sum, one) => sum + costOfTarget(targetOf(attributes.get(one))), 0)
    // Children inherit the paint, and each of them is painted separately.
    const cost = content * (1 + costOfAll(paintAttributes)) + costOfAll(effectAttributes)
    if (cost > drawnElementsMax) throw invalidSvg('The SVG takes too long to draw')
    // A gradient is drawn as part of the elements that it fills.
    return name.endsWith('Gradient') ? 0 : cost
  }

  costOf(root)
}

/** Of two elements with one id, browsers take the first. */
function collectTargets(element: SvgElement, targets: Map<string, SvgElement>): void {
  const id = element.attributes.get('id')
  if (id !== undefined && !targets.has(id)) targets.set(id, element)
  for (const child of element.children) {
    if (typeof child !== 'string') collectTargets(child, targets)
  }
}

function serialize({ name, attributes, children }: SvgElement, parts: string[]): void {
  parts.push(`<${name}`)
  for (const [attribute, value] of attributes) parts.push(` ${attribute}="${escapeXml(value)}"`)
  if (children.length === 0) {
    parts.push('/>')
    return
  }
  parts.push('>')
  for (const child of children) {
    if (typeof child === 'string') parts.push(escapeXml(child))
    else serialize(child, parts)
  }
  parts.push(`</${name}>`)
}

/** Whitespace is escaped too, since parsers turn raw line ends in attributes into spaces. */
const xmlEscapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"\t\n\r]/g, (character) => xmlEscapes[character] ?? character)
}

const pixelLength = /^\s*(\d{1,9}(?:\.\d{1,9})?)(?:px)?\s*$/

/** `width` and `height`, or the size of the `viewBox`. */
function sizeOf({ attributes }: SvgElement): { width: number | null; height: number | null } {
  const viewBox = (attributes.get('viewBox') ?? '').trim().split(/[\s,]+/)
  const read = (text: string | undefined) => {
    const length = Number(pixelLength.exec(text ?? '')?.[1])
    return length > 0 ? length : null
  }
  return {
    width: read(attributes.get('width')) ?? read(viewBox[2]),
    height: read(attributes.get('height')) ?? read(viewBox[3]),
  }
}
