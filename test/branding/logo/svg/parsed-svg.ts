import { expect } from 'bun:test'
import { SaxesParser } from 'saxes'

/** A drawing as another parser's user sees it: checked against rules that know nothing of ours. */

export type SeenElement = { readonly name: string; readonly attributes: Record<string, string> }

const harmless = new Set([
  ...['svg', 'g', 'defs', 'symbol', 'use', 'title', 'desc', 'text', 'tspan'],
  ...['path', 'rect', 'circle', 'ellipse', 'line', 'polyline', 'polygon'],
  ...['linearGradient', 'radialGradient', 'stop', 'pattern', 'clipPath', 'mask', 'filter'],
  ...['feBlend', 'feColorMatrix', 'feComposite', 'feDropShadow', 'feFlood', 'feGaussianBlur'],
  ...['feMerge', 'feMergeNode', 'feOffset'],
])
const references = new Set(['fill', 'stroke', 'clip-path', 'mask', 'filter'])
const localUrl = /^\s*url\(\s*(['"]?)#[\p{L}\p{N}_.:-]+\1\s*\)(\s+[\w#(),.%\s-]+)?\s*$/u

/** Reads a drawing again, and holds every single thing in it against what is harmless. */
export function seeHarmless(drawing: string): SeenElement[] {
  const seen: SeenElement[] = []
  const parser = new SaxesParser({ xmlns: true })
  for (const event of [
    'doctype',
    'processinginstruction',
    'comment',
    'cdata',
    'xmldecl',
  ] as const) {
    parser.on(event, (what: unknown) => {
      throw new Error(`${event}: ${JSON.stringify(what)}`)
    })
  }
  parser.on('error', (error) => {
    throw error
  })
  parser.on('opentag', ({ name, local, uri, attributes }) => {
    expect([uri, name]).toEqual(['http://www.w3.org/2000/svg', local])
    expect(harmless, `<${local}>`).toContain(local)
    const told = Object.values(attributes).filter((attribute) => attribute.name !== 'xmlns')
    for (const attribute of told) checkAttribute(local, attribute)
    seen.push({
      name: local,
      attributes: Object.fromEntries(told.map((attribute) => [attribute.name, attribute.value])),
    })
  })
  parser.write(drawing).close()
  expect(drawing).toStartWith('<svg xmlns="http://www.w3.org/2000/svg"')
  return seen
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
  // What is no reference may call what computes a colour or a transform.
  for (const [, called] of value.matchAll(/([\w-]+)\s*\(/g)) {
    expect(called, where).toMatch(
      /^(url|rgba?|hsla?|hwb|lab|lch|oklab|oklch|matrix|translate|scale|rotate|skewX|skewY)$/,
    )
  }
}
