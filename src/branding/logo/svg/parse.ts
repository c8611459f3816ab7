import { SaxesParser, type SaxesTagNS } from 'saxes'
import { invalidSvg, unsupportedImageType } from '../image.ts'
import { classifyElement, type ElementClass, holdsText, svgNamespace } from './allow-list.ts'
import { defineEntities } from './entities.ts'

/** An allow-listed element, with all attributes of the upload. */
export type SvgElement = {
  readonly name: string
  readonly attributes: Map<string, string>
  readonly children: (SvgElement | string)[]
}

type ParsedSvg = { readonly root: SvgElement; readonly styleSheets: readonly string[] }

/** Collects descriptions of removed content, each kind once. */
export type Removals = { add(description: string): void }

/** Drawing programs nest ten to twenty deep. */
const depthMax = 64
const elementsMax = 20_000

const xlinkNamespace = 'http://www.w3.org/1999/xlink'
const declarationNamespace = 'http://www.w3.org/2000/xmlns/'

/**
 * Parses the allow-listed elements into a tree. Throws `unsupported_image_type` for anything that is
 * not an SVG, and `invalid_svg` for an SVG that is malformed, expands too far or is nested too deep.
 */
export function parseSvg(text: string, removals: Removals): ParsedSvg {
  const builder = createBuilder(removals)
  const parser = new SaxesParser({ xmlns: true })
  let hasSvgTag = false
  parser.on('doctype', (doctype) => {
    if (!/^\s*svg\b/.test(doctype)) throw unsupportedImageType()
    defineEntities(doctype, parser.ENTITIES, removals)
  })
  parser.on('error', (error) => {
    if (!hasSvgTag) throw unsupportedImageType()
    // The parser prefixes line and column.
    const reason = error.message.replace(/^\d+:\d+: /, '').slice(0, 200)
    throw invalidSvg(`The SVG is not well-formed: ${reason}`)
  })
  parser.on('processinginstruction', ({ target }) => removals.add(`<?${target}?>`))
  parser.on('opentagstart', ({ name }) => {
    hasSvgTag ||= /^([^:]*:)?svg$/.test(name)
  })
  parser.on('opentag', (tag) => builder.open(tag))
  parser.on('closetag', () => builder.close())
  parser.on('text', (piece) => builder.text(piece))
  parser.on('cdata', (piece) => builder.text(piece))
  parser.write(text).close()
  const root = builder.root()
  if (root === undefined) throw unsupportedImageType()
  return { root, styleSheets: builder.styleSheets }
}

type OpenElement = { readonly class: ElementClass; readonly element: SvgElement | undefined }

function createBuilder(removals: Removals) {
  const stack: OpenElement[] = []
  const styleSheets: string[] = []
  let root: SvgElement | undefined
  let elements = 0

  function enter(tag: SaxesTagNS): OpenElement {
    const parent = stack.at(-1)
    if (parent?.class === 'removed' || parent?.class === 'style') {
      return { class: 'removed', element: undefined }
    }
    const elementClass = tag.uri === svgNamespace ? classifyElement(tag.local) : 'removed'
    if (elementClass !== 'kept') {
      if (elementClass !== 'style') removals.add(`<${tag.name}>`)
      return { class: elementClass, element: parent?.element }
    }
    const element = { name: tag.local, attributes: readAttributes(tag, removals), children: [] }
    parent?.element?.children.push(element)
    return { class: 'kept', element }
  }

  return {
    styleSheets,
    root: () => root,
    open(tag: SaxesTagNS): void {
      if (root === undefined && (tag.uri !== svgNamespace || tag.local !== 'svg')) {
        throw unsupportedImageType()
      }
      if (stack.length >= depthMax) throw invalidSvg(`An SVG may be at most ${depthMax} deep`)
      elements += 1
      if (elements > elementsMax)
        throw invalidSvg(`An SVG may have at most ${elementsMax} elements`)
      const opened = enter(tag)
      root ??= opened.element
      stack.push(opened)
    },
    close(): void {
      stack.pop()
    },
    text(piece: string): void {
      const top = stack.at(-1)
      if (top?.class === 'style') styleSheets.push(piece)
      if (top?.class !== 'kept' && top?.class !== 'unwrapped') return
      if (top.element !== undefined && holdsText(top.element.name)) {
        top.element.children.push(piece)
      }
    },
  }
}

function readAttributes(tag: SaxesTagNS, removals: Removals): Map<string, string> {
  const attributes = new Map<string, string>()
  for (const { name, local, uri, value } of Object.values(tag.attributes)) {
    if (uri === declarationNamespace) continue
    // Browsers prefer `href` to `xlink:href`.
    if (uri === '') attributes.set(local, value)
    else if (uri === xlinkNamespace && local === 'href') {
      if (!attributes.has('href')) attributes.set('href', value)
    } else removals.add(`${name} of <${tag.local}>`)
  }
  return attributes
}
