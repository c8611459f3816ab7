import { logoBytesMax } from '#branding/logo/image.ts'
import { svgNamespace } from './allow-list.ts'
import { cleanSvg } from './clean.ts'
import { checkDrawingCost } from './drawing-cost.ts'
import { invalidSvg, parseSvg, type SvgElement } from './parse.ts'
import { createRemovals } from './removals.ts'

export type ReadSvg = {
  /** A document of its own, built anew. */
  readonly drawing: string
  readonly width: number | null
  readonly height: number | null
  readonly sanitized: readonly string[]
}

/**
 * A drawing with what is on the allow-list, and nothing else. Throws `unsupported_image_type` for what
 * is no SVG, and `invalid_svg` for what is one and cannot be trusted.
 */
export function readSvg(text: string): ReadSvg {
  const removals = createRemovals()
  const root = cleanSvg(parseSvg(text, removals), removals)
  checkDrawingCost(root)
  const parts: string[] = []
  write(root, parts)
  const drawing = parts.join('').replace('<svg', `<svg xmlns="${svgNamespace}"`)
  if (Buffer.byteLength(drawing) > logoBytesMax) {
    throw invalidSvg('The SVG is too long once its styles stand where they apply')
  }
  return { drawing, ...sizeOf(root), sanitized: removals.list() }
}

function write({ name, attributes, children }: SvgElement, parts: string[]): void {
  parts.push(`<${name}`)
  for (const [attribute, value] of attributes) parts.push(` ${attribute}="${escaped(value)}"`)
  if (children.length === 0) {
    parts.push('/>')
    return
  }
  parts.push('>')
  for (const child of children) {
    if (typeof child === 'string') parts.push(escaped(child))
    else write(child, parts)
  }
  parts.push(`</${name}>`)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

/** Parsers make spaces of line ends in attributes unless they are written like this. */
function escaped(text: string): string {
  return text.replace(/[&<>"\t\n\r]/g, (sign) => entities[sign] ?? sign)
}

const pixels = /^\s*(\d{1,9}(?:\.\d{1,9})?)(?:px)?\s*$/

/** What it says of itself, or how large its canvas is. */
function sizeOf({ attributes }: SvgElement): { width: number | null; height: number | null } {
  const canvas = (attributes.get('viewBox') ?? '').trim().split(/[\s,]+/)
  const read = (text: string | undefined) => {
    const side = Number(pixels.exec(text ?? '')?.[1])
    return side > 0 ? side : null
  }
  return {
    width: read(attributes.get('width')) ?? read(canvas[2]),
    height: read(attributes.get('height')) ?? read(canvas[3]),
  }
}
