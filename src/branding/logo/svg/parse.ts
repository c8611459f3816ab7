import { SaxesParser, type SaxesTagNS } from 'saxes'
import { unsupportedType } from '#branding/logo/image.ts'
import { AppError } from '#lib/errors.ts'
import { holdsText, type Place, placeOf, svgNamespace } from './allow-list.ts'
import type { Removals } from './removals.ts'

/** An element that may be drawn, with all attributes that it came with. */
export type SvgElement = {
  readonly name: string
  readonly attributes: Map<string, string>
  readonly children: (SvgElement | string)[]
}

export type ParsedSvg = { readonly root: SvgElement; readonly styleSheets: readonly string[] }

/** Drawing programs nest ten deep, or twenty. */
const depthMax = 64
const elementsMax = 20_000

const xlinkNamespace = 'http://www.w3.org/1999/xlink'
const declarationNamespace = 'http://www.w3.org/2000/xmlns/'

/**
 * The elements of the allow-list, as a tree. Throws `unsupported_image_type` for what is no SVG, and
 * `invalid_svg` for what is one and is not well-formed, declares entities or is nested too deep.
 */
export function parseSvg(text: string, removals: Removals): ParsedSvg {
  const builder = createBuilder(removals)
  const parser = new SaxesParser({ xmlns: true })
  let isBegun = false
  parser.on('doctype', (doctype) => {
    if (!/^\s*svg\b/.test(doctype)) throw unsupportedType()
    throw invalidSvg('An SVG must have no DOCTYPE and no entities; plain SVG has none')
  })
  parser.on('error', (error) => {
    if (!isBegun) throw unsupportedType()
    throw invalidSvg(`The SVG is not well-formed: ${reasonOf(error)}`)
  })
  parser.on('processinginstruction', ({ target }) => removals.add(`<?${target}?>`))
  parser.on('opentagstart', ({ name }) => {
    isBegun ||= /^([^:]*:)?svg$/.test(name)
  })
  parser.on('opentag', (tag) => builder.open(tag))
  parser.on('closetag', () => builder.close())
  parser.on('text', (piece) => builder.text(piece))
  parser.on('cdata', (piece) => builder.text(piece))
  parser.write(text).close()
  const root = builder.root()
  if (root === undefined) throw unsupportedType()
  return { root, styleSheets: builder.styleSheets }
}

type Frame = { readonly place: Place; readonly element: SvgElement | undefined }

function createBuilder(removals: Removals) {
  const frames: Frame[] = []
  const styleSheets: string[] = []
  let root: SvgElement | undefined
  let elements = 0

  function enter(tag: SaxesTagNS): Frame {
    const parent = frames.at(-1)
    if (parent?.place === 'dropped' || parent?.place === 'style') {
      return { place: 'dropped', element: undefined }
    }
    const place = tag.uri === svgNamespace ? placeOf(tag.local) : 'dropped'
    if (place !== 'kept') {
      if (place !== 'style') removals.add(`<${tag.name}>`)
      return { place, element: parent?.element }
    }
    const element = { name: tag.local, attributes: readAttributes(tag, removals), children: [] }
    parent?.element?.children.push(element)
    return { place, element }
  }

  return {
    styleSheets,
    root: () => root,
    open(tag: SaxesTagNS): void {
      if (root === undefined && (tag.uri !== svgNamespace || tag.local !== 'svg')) {
        throw unsupportedType()
      }
      if (frames.length >= depthMax) throw invalidSvg(`An SVG is nested ${depthMax} deep at most`)
      elements += 1
      if (elements > elementsMax) throw invalidSvg(`An SVG has at most ${elementsMax} elements`)
      const frame = enter(tag)
      root ??= frame.element
      frames.push(frame)
    },
    close(): void {
      frames.pop()
    },
    text(piece: string): void {
      const frame = frames.at(-1)
      if (frame?.place === 'style') styleSheets.push(piece)
      if (frame?.place !== 'kept' && frame?.place !== 'opened') return
      if (frame.element !== undefined && holdsText(frame.element.name)) {
        frame.element.children.push(piece)
      }
    },
  }
}

function readAttributes(tag: SaxesTagNS, removals: Removals): Map<string, string> {
  const attributes = new Map<string, string>()
  for (const { name, local, uri, value } of Object.values(tag.attributes)) {
    if (uri === declarationNamespace) continue
    // Where both are given, browsers take the one without a namespace.
    if (uri === '') attributes.set(local, value)
    else if (uri === xlinkNamespace && local === 'href') {
      if (!attributes.has('href')) attributes.set('href', value)
    } else removals.add(`${name} of <${tag.local}>`)
  }
  return attributes
}

/** Without the place, which counts what the parser has seen. */
function reasonOf(error: Error): string {
  return error.message.replace(/^\d+:\d+: /, '').slice(0, 200)
}

export function invalidSvg(sentence: string): AppError {
  return new AppError('unprocessable', `${sentence.replace(/\.$/, '')}.`, {
    param: 'file',
    code: 'invalid_svg',
  })
}
