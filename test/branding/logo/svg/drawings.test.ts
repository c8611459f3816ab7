import { describe, expect, test } from 'bun:test'
import { readSvg } from '#branding/logo/svg/read-svg.ts'
import { svgOf } from '#test/support/pictures.ts'
import { seeHarmless } from './parsed-svg.ts'

/** Drawings of real programs look as they did. */

function attributesOf(inside: string, name: string): Record<string, string>[] {
  const { drawing, sanitized } = readSvg(svgOf(inside))
  expect(sanitized).toEqual([])
  return seeHarmless(drawing)
    .filter((element) => element.name === name)
    .map(({ attributes }) => attributes)
}

test('shapes, gradients, clips, filters and texts stay as they are', () => {
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
  const { drawing, sanitized } = readSvg(svgOf(inside))
  expect(sanitized).toEqual([])
  seeHarmless(drawing)
  // Spelled in our way: the quotes of attributes, and what is escaped.
  expect(drawing.slice(drawing.indexOf('>') + 1)).toBe(`${inside.replaceAll('&apos;', "'")}</svg>`)
})

test('built anew once more it is the same', () => {
  const inside =
    '<style>.a{fill:#123}</style><text class="a" x="1&#10;2">a\tb\n&lt;c&gt; "d"</text><g id="x"/>'
  const once = readSvg(svgOf(inside)).drawing
  expect(readSvg(once)).toMatchObject({ drawing: once, sanitized: [] })
})

test('a prefix is dropped, and an old link is a link', () => {
  const { drawing, sanitized } = readSvg(
    '<?xml version="1.0" encoding="UTF-8"?><!-- made by hand --><s:svg xmlns:s="http://www.w3.org/2000/svg" xmlns:l="http://www.w3.org/1999/xlink"><s:g id="a"/><s:use l:href="#a"/></s:svg>',
  )
  expect(sanitized).toEqual([])
  expect(drawing).toBe('<svg xmlns="http://www.w3.org/2000/svg"><g id="a"/><use href="#a"/></svg>')
})

describe('styles become attributes', () => {
  test('of a style attribute, which goes before attributes', () => {
    const style = 'fill: url(#a) ; stroke-width:2px;FILL-OPACITY:.5'
    expect(attributesOf(`<rect fill="red" style="${style}"/>`, 'rect')).toEqual([
      { fill: 'url(#a)', 'stroke-width': '2px', 'fill-opacity': '.5' },
    ])
  })

  test('of rules for elements, classes and ids, the more precise the stronger', () => {
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

  test('also where the style sheet comes last, or in parts', () => {
    const inside =
      '<defs><rect class="st0"/></defs><style type="text/css"><![CDATA[.st0{fill:red}]]></style><style>.st0{stroke:blue}</style>'
    expect(attributesOf(inside, 'rect')).toEqual([{ fill: 'red', stroke: 'blue' }])
  })
})

describe('its size', () => {
  const sizes: [string, [number | null, number | null]][] = [
    ['width="32" height="48.5px"', [32, 48.5]],
    ['width="32"', [32, 20]],
    ['width="100%" height="1em"', [10, 20]],
    ['width="0" height="-1"', [10, 20]],
  ]
  test.each(sizes)('is what it says, or that of its canvas: %s', (attributes, expected) => {
    const { width, height } = readSvg(svgOf('', attributes))
    expect([width, height]).toEqual(expected)
  })

  test('may be unknown', () => {
    const bare = readSvg('<svg xmlns="http://www.w3.org/2000/svg"/>')
    expect(bare).toMatchObject({ width: null, height: null })
  })
})
