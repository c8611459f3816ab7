import { expect } from 'bun:test'
import { SaxesParser } from 'saxes'

export type ParsedElement = { readonly name: string; readonly attributes: Record<string, string> }

const harmless = new Set([
  ...['svg', 'g', 'defs', 'symbol', 'use', 'title', 'desc', 'text', 'tspan'],
  ...['path', 'rect', 'circle', 'ellipse', 'line', 'polyline', 'polygon'],
  ...['linearGradient', 'radialGradient', 'stop', 'pattern', 'clipPath', 'mask', 'filter'],
  ...['feBlend', 'feColorMatrix', 'feComposite', 'feDropShadow', 'feFlood', 'feGaussianBlur'],
  ...['feMerge', 'feMergeNode', 'feOffset'],
])
const references = new Set(['fill', 'stroke', 'clip-path', 'mask', 'filter'])
const localUrl = /^\s*url\(\s*(['"]?)#[\p{L}\p{N}_.:-]+\1\s*\)(\s+[\w#(),.%\s-]+)?\s*$/u

/** Parses a sanitised SVG and checks every part of it, by rules that are independent of the sanitiser. */
export function parseHarmless(svg: string): ParsedElement[] {
  const elements: ParsedElement[] = []
  const parser = new SaxesParser({ xmlns: true })
  for (const event of [
    'doctype',
    'processinginstruction',
    'comment',
    'cdata',
    'xmldecl',
  ] as const) {
    parser.on(event, (content: unknown) => {
      throw new Error(`${event}: ${JSON.stringify(content)}`)
    })
  }
  parser.on('error', (error) => {
    throw error
  })
  parser.on('opentag', ({ name, local, uri, attributes }) => {
    expect([uri, name]).toEqual(['http://www.w3.org/2000/svg', local])
    expect(harmless, `<${local}>`).toContain(local)
    const own = Object.values(attributes).filter((attribute) => attribute.name !== 'xmlns')
    for (const attribute of own) checkAttribute(local, attribute)
    elements.push({
      name: local,
      attributes: Object.fromEntries(own.map((attribute) => [attribute.name, attribute.value])),
    })
  })
  parser.write(svg).close()
  expect(svg).toStartWith('<svg xmlns="http://www.w3.org/2000/svg"')
  return elements
}

function checkAttribute(
  element: string,
  { name, local, uri, value }: { name: string; local: string; uri: string; value: string },
): void {
  const where = `${name}="${value}" of <${element}>`
  expect([uri, name], where).toEqual(['', local])
  expect(name, where).not.toMatch(/^on|^style$|^class$|^src|^xml|^ping$|^target$|^attribute/i)
  expect(value, where).not.toMatch(/\\|javascript|data:|https?:|\/\/|@import|expression|&/i)
  if (name === 'href') expect(value, where).toMatch(/^#[\p{L}\p{N}_.:-]+$/u)
  else if (/url/i.test(value)) {
    expect(references, where).toContain(name)
    expect(value, where).toMatch(localUrl)
  }
  // Other functions may only compute a colour or a transform.
  for (const [, functionName] of value.matchAll(/([\w-]+)\s*\(/g)) {
    expect(functionName, where).toMatch(
      /^(url|rgba?|hsla?|hwb|lab|lch|oklab|oklch|matrix|translate|scale|rotate|skewX|skewY)$/,
    )
  }
}
