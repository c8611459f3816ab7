import { describe, expect, test } from 'bun:test'
import { readSvg } from '#branding/logo/svg/read-svg.ts'
import { AppError } from '#lib/errors.ts'
import { svgOf } from '#test/support/pictures.ts'
import { otherDocuments, refusedDrawings, tricks } from './hostile-drawings.ts'
import { seeHarmless } from './parsed-svg.ts'

/** Drawings are built anew from what is harmless. */

function refusal(drawing: string): string {
  try {
    readSvg(drawing)
  } catch (error) {
    return error instanceof AppError ? `${error.status} ${error.wireCode}` : String(error)
  }
  return 'taken'
}

describe('what could act or load is taken out, and told', () => {
  test.each(tricks)('%s', (_, inside, sanitized) => {
    const read = readSvg(svgOf(`${inside}<circle r="1" fill="red"/>`))
    expect(read.sanitized).toEqual(sanitized)
    expect(seeHarmless(read.drawing)).toContainEqual({
      name: 'circle',
      attributes: { r: '1', fill: expect.stringMatching(/red/) },
    })
  })
})

describe('ten levels down it is the same', () => {
  const wrappings: [string, (inside: string) => string][] = [
    ['groups', (inside) => `<g>${inside}</g>`],
    ['links', (inside) => `<a href="https://evil.example">${inside}</a>`],
    ['drawings', (inside) => `<svg x="1" onload="alert(1)">${inside}</svg>`],
    ['symbols', (inside) => `<defs><symbol id="s" onload="x">${inside}</symbol></defs>`],
    ['switches', (inside) => `<switch><foreignObject>${inside}</foreignObject>${inside}</switch>`],
    ['masks and patterns', (inside) => `<mask><pattern>${inside}</pattern></mask>`],
  ]
  const wrap = (how: (inside: string) => string, levels: number, inside: string): string =>
    levels === 0 ? inside : how(wrap(how, levels - 1, inside))

  test.each(wrappings)('in %s', (_, how) => {
    for (const [, inside, sanitized] of tricks) {
      const levels = how('').includes('foreignObject') ? 4 : 10
      const read = readSvg(svgOf(wrap(how, levels, `${inside}<circle r="1"/>`)))
      expect(seeHarmless(read.drawing).map(({ name }) => name)).toContain('circle')
      expect(read.sanitized).toEqual(expect.arrayContaining([...sanitized]))
    }
  })

  test('what is in something that was taken out goes with it, however deep', () => {
    const inside = wrap((one) => `<g><rect width="7"/>${one}</g>`, 10, '<script/>')
    const { drawing, sanitized } = readSvg(svgOf(`<foreignObject>${inside}</foreignObject>`))
    expect(seeHarmless(drawing).map(({ name }) => name)).toEqual(['svg'])
    expect(sanitized).toEqual(['<foreignObject>'])
  })

  test('elements that use one another ten times each, ten levels up, are refused', () => {
    const level = (at: number) => `<g id="l${at}">${`<use href="#l${at - 1}"/>`.repeat(10)}</g>`
    const levels = Array.from({ length: 10 }, (_, at) => level(at + 1))
    const bomb = `<rect id="l0"/>${levels.join('')}`
    expect(refusal(svgOf(`<defs>${bomb}</defs><use href="#l10"/>`))).toBe('422 invalid_svg')
    expect(refusal(svgOf(bomb.replaceAll('href', 'xlink:href')))).toBe('422 invalid_svg')
  })

  test('patterns that are filled with patterns, ten levels up, are refused', () => {
    const level = (at: number) =>
      `<pattern id="p${at}"><g fill="url(#p${at - 1})">${'<rect/>'.repeat(10)}</g></pattern>`
    const levels = Array.from({ length: 10 }, (_, at) => level(at + 1))
    expect(refusal(svgOf(levels.join('')))).toBe('422 invalid_svg')
    const styled = levels.join('').replaceAll(/fill="([^"]*)"/g, 'style="fill:$1"')
    expect(refusal(svgOf(styled))).toBe('422 invalid_svg')
  })

  test('masks and clips of masks and clips, ten levels up, are refused', () => {
    const level = (at: number) =>
      `<mask id="m${at}">${`<rect mask="url(#m${at - 1})" clip-path="url('#m${at - 1}')"/>`.repeat(9)}</mask>`
    const levels = Array.from({ length: 10 }, (_, at) => level(at + 1))
    expect(refusal(svgOf(levels.join('')))).toBe('422 invalid_svg')
  })
})

test.each(refusedDrawings)('%s is refused', (_, drawing) => {
  expect(refusal(drawing)).toBe('422 invalid_svg')
})

test.each(otherDocuments)('%s is no drawing', (_, content) => {
  expect(refusal(content)).toBe('415 unsupported_image_type')
})

describe('a drawing has its limits', () => {
  const nested = (levels: number) =>
    svgOf(`${'<g>'.repeat(levels - 1)}${'</g>'.repeat(levels - 1)}`)
  const dropped = (levels: number) =>
    svgOf(`<metadata>${'<g>'.repeat(levels - 2)}${'</g>'.repeat(levels - 2)}</metadata>`)

  test('64 levels, also of what is taken out', () => {
    expect([refusal(nested(64)), refusal(dropped(64))]).toEqual(['taken', 'taken'])
    expect([refusal(nested(65)), refusal(dropped(65))]).toEqual([
      '422 invalid_svg',
      '422 invalid_svg',
    ])
  })

  test('20,000 elements', () => {
    expect(refusal(svgOf('<g/>'.repeat(19_999)))).toBe('taken')
    expect(refusal(svgOf('<g/>'.repeat(20_000)))).toBe('422 invalid_svg')
  })

  test('32 references from one to the next', () => {
    const chain = (length: number) =>
      Array.from({ length }, (_, at) => `<g id="u${at}"><use href="#u${at + 1}"/></g>`).join('')
    expect(refusal(svgOf(chain(33)))).toBe('taken')
    expect(refusal(svgOf(chain(34)))).toBe('422 invalid_svg')
    expect(refusal(svgOf(chain(9_000)))).toBe('422 invalid_svg')
  })

  test('512 KB once its styles stand where they apply', () => {
    const fonts = 'x'.repeat(400)
    const drawing = (elements: number) =>
      svgOf(`<style>.a{font-family:${fonts}}</style>${'<g class="a"/>'.repeat(elements)}`)
    expect(refusal(drawing(1_000))).toBe('taken')
    expect(refusal(drawing(2_000))).toBe('422 invalid_svg')
  })

  test('100 kinds of things that are told to have been taken out', () => {
    const names = Array.from({ length: 150 }, (_, at) => `<x${at}/>`)
    const { sanitized } = readSvg(svgOf(`${names.join('')}<${'long'.repeat(100)}/>`))
    expect(sanitized).toBeArrayOfSize(101)
    expect(sanitized.at(-1)).toBe('and more')
    expect(Math.max(...sanitized.map((what) => what.length))).toBeLessThanOrEqual(80)
  })

  const padded: [string, string][] = [
    ['open comments in a style sheet', `<style>${'/*'.repeat(250_000)}</style>`],
    ['open braces in a style sheet', `<style>${'{'.repeat(500_000)}</style>`],
    ['at signs in a style sheet', `<style>${'@'.repeat(500_000)}</style>`],
    ['selectors', `<style>${'a,'.repeat(100_000)}b{${'fill:red;'.repeat(20_000)}}</style>`],
    ['spaces in a paint', `<g fill="url(#a)${' '.repeat(500_000)}x"/>`],
    ['transforms', `<g transform="${'scale(1) '.repeat(50_000)}x"/>`],
    ['classes', `<g class="${'a '.repeat(200_000)}"/>`],
    ['attributes', `<g ${Array.from({ length: 40_000 }, (_, at) => `a${at}=""`).join(' ')}/>`],
    ['brackets', '<'.repeat(500_000)],
    ['text', `<text>${'&amp;'.repeat(50_000)}</text>`],
  ]
  // What takes time by the square of its length would outlast the patience of the test run.
  test.each(padded)('half a megabyte of %s is judged', (_, inside) => {
    expect(refusal(svgOf(inside))).toMatch(/^(taken|422 invalid_svg)$/)
  })
})
