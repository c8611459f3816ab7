import { describe, expect, test } from 'bun:test'
import { sanitizeSvg } from '#branding/logo/svg/sanitize.ts'
import { AppError } from '#lib/errors.ts'
import { svgOf } from '#test/support/sample-images.ts'
import { parseHarmless } from './harmless-svg.ts'
import { attacks, invalidSvgs, otherDocuments } from './hostile-svgs.ts'

function outcomeOf(svg: string): string {
  try {
    sanitizeSvg(svg)
  } catch (error) {
    return error instanceof AppError ? `${error.status} ${error.wireCode}` : String(error)
  }
  return 'accepted'
}

describe('active and external content is removed and reported', () => {
  test.each(attacks)('%s', (_, content, sanitized) => {
    const result = sanitizeSvg(svgOf(`${content}<circle r="1" fill="red"/>`))
    expect(result.sanitized).toEqual(sanitized)
    expect(parseHarmless(result.svg)).toContainEqual({
      name: 'circle',
      attributes: { r: '1', fill: expect.stringMatching(/red/) },
    })
  })
})

describe('ten levels deep the result is the same', () => {
  const wrappings: [string, (content: string) => string][] = [
    ['groups', (content) => `<g>${content}</g>`],
    ['links', (content) => `<a href="https://evil.example">${content}</a>`],
    ['drawings', (content) => `<svg x="1" onload="alert(1)">${content}</svg>`],
    ['symbols', (content) => `<defs><symbol id="s" onload="x">${content}</symbol></defs>`],
    [
      'switches',
      (content) => `<switch><foreignObject>${content}</foreignObject>${content}</switch>`,
    ],
    ['masks and patterns', (content) => `<mask><pattern>${content}</pattern></mask>`],
  ]
  const wrap = (how: (content: string) => string, levels: number, content: string): string =>
    levels === 0 ? content : how(wrap(how, levels - 1, content))

  test.each(wrappings)('in %s', (_, how) => {
    for (const [, content, sanitized] of attacks) {
      const levels = how('').includes('foreignObject') ? 4 : 10
      const result = sanitizeSvg(svgOf(wrap(how, levels, `${content}<circle r="1"/>`)))
      expect(parseHarmless(result.svg).map(({ name }) => name)).toContain('circle')
      expect(result.sanitized).toEqual(expect.arrayContaining([...sanitized]))
    }
  })

  test('the children of a removed element are removed at any depth', () => {
    const content = wrap((one) => `<g><rect width="7"/>${one}</g>`, 10, '<script/>')
    const { svg, sanitized } = sanitizeSvg(svgOf(`<foreignObject>${content}</foreignObject>`))
    expect(parseHarmless(svg).map(({ name }) => name)).toEqual(['svg'])
    expect(sanitized).toEqual(['<foreignObject>'])
  })

  test('ten levels of ten references each are refused', () => {
    const level = (index: number) =>
      `<g id="l${index}">${`<use href="#l${index - 1}"/>`.repeat(10)}</g>`
    const levels = Array.from({ length: 10 }, (_, index) => level(index + 1))
    const bomb = `<rect id="l0"/>${levels.join('')}`
    expect(outcomeOf(svgOf(`<defs>${bomb}</defs><use href="#l10"/>`))).toBe('422 invalid_svg')
    expect(outcomeOf(svgOf(bomb.replaceAll('href', 'xlink:href')))).toBe('422 invalid_svg')
  })

  test('ten levels of patterns filled with patterns are refused', () => {
    const level = (index: number) =>
      `<pattern id="p${index}"><g fill="url(#p${index - 1})">${'<rect/>'.repeat(10)}</g></pattern>`
    const levels = Array.from({ length: 10 }, (_, index) => level(index + 1))
    expect(outcomeOf(svgOf(levels.join('')))).toBe('422 invalid_svg')
    const styled = levels.join('').replaceAll(/fill="([^"]*)"/g, 'style="fill:$1"')
    expect(outcomeOf(svgOf(styled))).toBe('422 invalid_svg')
  })

  test('ten levels of nested masks and clip paths are refused', () => {
    const level = (index: number) =>
      `<mask id="m${index}">${`<rect mask="url(#m${index - 1})" clip-path="url('#m${index - 1}')"/>`.repeat(9)}</mask>`
    const levels = Array.from({ length: 10 }, (_, index) => level(index + 1))
    expect(outcomeOf(svgOf(levels.join('')))).toBe('422 invalid_svg')
  })
})

test.each(invalidSvgs)('%s is refused', (_, svg) => {
  expect(outcomeOf(svg)).toBe('422 invalid_svg')
})

test.each(otherDocuments)('%s is not an SVG', (_, content) => {
  expect(outcomeOf(content)).toBe('415 unsupported_image_type')
})

describe('limits', () => {
  const nested = (levels: number) =>
    svgOf(`${'<g>'.repeat(levels - 1)}${'</g>'.repeat(levels - 1)}`)
  const removed = (levels: number) =>
    svgOf(`<metadata>${'<g>'.repeat(levels - 2)}${'</g>'.repeat(levels - 2)}</metadata>`)

  test('64 levels, including removed elements', () => {
    expect([outcomeOf(nested(64)), outcomeOf(removed(64))]).toEqual(['accepted', 'accepted'])
    expect([outcomeOf(nested(65)), outcomeOf(removed(65))]).toEqual([
      '422 invalid_svg',
      '422 invalid_svg',
    ])
  })

  test('20,000 elements', () => {
    expect(outcomeOf(svgOf('<g/>'.repeat(19_999)))).toBe('accepted')
    expect(outcomeOf(svgOf('<g/>'.repeat(20_000)))).toBe('422 invalid_svg')
  })

  test('32 nested references', () => {
    const chain = (length: number) =>
      Array.from(
        { length },
        (_, index) => `<g id="u${index}"><use href="#u${index + 1}"/></g>`,
      ).join('')
    expect(outcomeOf(svgOf(chain(33)))).toBe('accepted')
    expect(outcomeOf(svgOf(chain(34)))).toBe('422 invalid_svg')
    expect(outcomeOf(svgOf(chain(9_000)))).toBe('422 invalid_svg')
  })

  test('512 KB once styles are inlined', () => {
    const fonts = 'x'.repeat(400)
    const styled = (elements: number) =>
      svgOf(`<style>.a{font-family:${fonts}}</style>${'<g class="a"/>'.repeat(elements)}`)
    expect(outcomeOf(styled(1_000))).toBe('accepted')
    expect(outcomeOf(styled(2_000))).toBe('422 invalid_svg')
  })

  test('100 kinds of reported removals', () => {
    const names = Array.from({ length: 150 }, (_, index) => `<x${index}/>`)
    const { sanitized } = sanitizeSvg(svgOf(`${names.join('')}<${'long'.repeat(100)}/>`))
    expect(sanitized).toBeArrayOfSize(101)
    expect(sanitized.at(-1)).toBe('and more')
    expect(Math.max(...sanitized.map((removal) => removal.length))).toBeLessThanOrEqual(80)
  })

  const padded: [string, string][] = [
    ['open comments in a style sheet', `<style>${'/*'.repeat(250_000)}</style>`],
    ['open braces in a style sheet', `<style>${'{'.repeat(500_000)}</style>`],
    ['at signs in a style sheet', `<style>${'@'.repeat(500_000)}</style>`],
    ['selectors', `<style>${'a,'.repeat(100_000)}b{${'fill:red;'.repeat(20_000)}}</style>`],
    ['spaces in a paint', `<g fill="url(#a)${' '.repeat(500_000)}x"/>`],
    ['transforms', `<g transform="${'scale(1) '.repeat(50_000)}x"/>`],
    ['classes', `<g class="${'a '.repeat(200_000)}"/>`],
    [
      'attributes',
      `<g ${Array.from({ length: 40_000 }, (_, index) => `a${index}=""`).join(' ')}/>`,
    ],
    ['brackets', '<'.repeat(500_000)],
    ['text', `<text>${'&amp;'.repeat(50_000)}</text>`],
  ]
  // An algorithm of quadratic time would exceed the test timeout.
  test.each(padded)('half a megabyte of %s takes linear time', (_, content) => {
    expect(outcomeOf(svgOf(content))).toMatch(/^(accepted|422 invalid_svg)$/)
  })
})
