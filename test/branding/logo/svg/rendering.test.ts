import { describe, expect, test } from 'bun:test'
import { sanitizeSvg } from '#branding/logo/svg/sanitize.ts'
import { svgOf } from '#test/support/sample-images.ts'
import { parseHarmless } from './harmless-svg.ts'

function attributesOf(inside: string, name: string): Record<string, string>[] {
  const { svg, sanitized } = sanitizeSvg(svgOf(inside))
  expect(sanitized).toEqual([])
  return parseHarmless(svg)
    .filter((element) => element.name === name)
    .map(({ attributes }) => attributes)
}

test('shapes, gradients, clips, filters and text are kept', () => {
  const inside = [
    '<title>Logo &amp; co</title><defs><linearGradient id="Größe_1" gradientTransform="rotate(45)">',
    '<stop offset="0" stop-color="rgb(10% 20% 30% / 0.5)"/></linearGradient>',
    '<linearGradient id="b" href="#Größe_1"/><clipPath id="c"><rect width="1" height="2.5e1"/></clipPath>',
    '<filter id="f:1"><feGaussianBlur in="SourceGraphic" stdDeviation="2 1"/></filter></defs>',
    '<g transform="translate(1,2) scale(-.5)" clip-path="url(#c)" filter="url(&apos;#f:1&apos;)">',
    '<path d="M0,0 C1 1-2-2 3.5e-1,4zA1 1 0 0 1 2 2" fill="url(#b) #fff" stroke="currentColor"/>',
    '<polygon points="0,0 1,1 2 0" fill-rule="evenodd" stroke-dasharray="1 2"/></g>',
    '<use href="#c" x="10%"/><text font-family="&apos;Source Sans&apos;, serif">A<tspan dy="1em">b</tspan> c</text>',
  ].join('')
  const { svg, sanitized } = sanitizeSvg(svgOf(inside))
  expect(sanitized).toEqual([])
  parseHarmless(svg)
  // Attribute quotes and escapes are normalised.
  expect(svg.slice(svg.indexOf('>') + 1)).toBe(`${inside.replaceAll('&apos;', "'")}</svg>`)
})

test('sanitising twice changes nothing', () => {
  const inside =
    '<style>.a{fill:#123}</style><text class="a" x="1&#10;2">a\tb\n&lt;c&gt; "d"</text><g id="x"/>'
  const once = sanitizeSvg(svgOf(inside)).svg
  expect(sanitizeSvg(once)).toMatchObject({ svg: once, sanitized: [] })
})

test('namespace prefixes are dropped and xlink:href becomes href', () => {
  const { svg, sanitized } = sanitizeSvg(
    '<?xml version="1.0" encoding="UTF-8"?><!-- made by hand --><s:svg xmlns:s="http://www.w3.org/2000/svg" xmlns:l="http://www.w3.org/1999/xlink"><s:g id="a"/><s:use l:href="#a"/></s:svg>',
  )
  expect(sanitized).toEqual([])
  expect(svg).toBe('<svg xmlns="http://www.w3.org/2000/svg"><g id="a"/><use href="#a"/></svg>')
})

describe('styles become attributes', () => {
  test('a style attribute overrides attributes', () => {
    const style = 'fill: url(#a) ; stroke-width:2px;FILL-OPACITY:.5'
    expect(attributesOf(`<rect fill="red" style="${style}"/>`, 'rect')).toEqual([
      { fill: 'url(#a)', 'stroke-width': '2px', 'fill-opacity': '.5' },
    ])
  })

  test('rules for elements, classes and ids apply by specificity', () => {
    const sheet = `
      /* made by a program */
      #d { fill: #d } .b, .c{fill:#c;stroke:#c} rect { fill:#e; opacity:1 } *{fill:#f}
      .a{fill:#a}`.replace(/#([a-f])\b(?! \{)/g, '#$1$1$1')
    const inside = `<style>${sheet}</style><g/><rect/><rect class="b"/><rect class="a  b"/><rect id="d" class="c"/><rect class="a" style="fill:#123"/>`
    expect(attributesOf(inside, 'g')).toEqual([{ fill: '#fff' }])
    expect(attributesOf(inside, 'rect')).toEqual([
      { fill: '#eee', opacity: '1' },
      { fill: '#ccc', opacity: '1', stroke: '#ccc' },
      { fill: '#aaa', opacity: '1', stroke: '#ccc' },
      { id: 'd', fill: '#ddd', opacity: '1', stroke: '#ccc' },
      { fill: '#123', opacity: '1' },
    ])
  })

  test('a style sheet may come last, or in several parts', () => {
    const inside =
      '<defs><rect class="st0"/></defs><style type="text/css"><![CDATA[.st0{fill:red}]]></style><style>.st0{stroke:blue}</style>'
    expect(attributesOf(inside, 'rect')).toEqual([{ fill: 'red', stroke: 'blue' }])
  })
})

describe('size', () => {
  const sizes: [string, [number | null, number | null]][] = [
    ['width="32" height="48.5px"', [32, 48.5]],
    ['width="32"', [32, 20]],
    ['width="100%" height="1em"', [10, 20]],
    ['width="0" height="-1"', [10, 20]],
  ]
  test.each(sizes)('comes from width and height, or the viewBox: %s', (attributes, expected) => {
    const { width, height } = sanitizeSvg(svgOf('', attributes))
    expect([width, height]).toEqual(expected)
  })

  test('may be unknown', () => {
    const unsized = sanitizeSvg('<svg xmlns="http://www.w3.org/2000/svg"/>')
    expect(unsized).toMatchObject({ width: null, height: null })
  })
})
