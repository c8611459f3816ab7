import { describe, expect, test } from 'bun:test'
import { classifyElement, isAllowed, isAllowedStyle } from '#branding/logo/svg/allow-list.ts'

/** One attribute of every form of values, with values that it may have. */
const attributes: readonly (readonly [string, readonly string[]])[] = [
  ['fill', ['none', '#fff', '#1234abcd', 'rgb(1 2 3 / 50%)', 'url(#paint)', "url('#a') red"]],
  ['color', ['red', 'currentColor', 'hsl(1deg 2% 3%)']],
  ['clip-path', ['none', 'url(#clip)', ' url( "#clip" ) ']],
  ['font-family', ['Helvetica, "Noto Sans", serif', '明朝']],
  ['stroke-width', ['2px', '1.5', '50%', 'inherit']],
  ['d', ['M0 0 L10,-1.5e3 z']],
  ['transform', ['none', 'translate(1, 2) rotate(45)', 'matrix(1 0 0 1 0 0)']],
  ['id', ['layer-1', 'a.b', 'Ebene_ä']],
  ['viewBox', ['0 0 10 10']],
]
const styles = attributes.filter(([name]) => !['d', 'transform', 'id', 'viewBox'].includes(name))

/** The value with the text at each of its places. */
function withInserted(value: string, text: string): string[] {
  return Array.from(
    { length: value.length + 1 },
    (_, at) => value.slice(0, at) + text + value.slice(at),
  )
}

describe.each(attributes)('%s', (name, values) => {
  test('may have its values', () => {
    for (const value of values)
      expect([value, isAllowed('rect', name, value)]).toEqual([value, true])
  })

  // CSS reads `\\75rl(` as `url(`, `\\3a` as a colon.
  test.each(['\\', '\\75 ', '\\3a', '<', '&', '{', ';', '/*', '@', '\0', '!'])(
    'never holds %p',
    (text) => {
      const allowed = values
        .flatMap((value) => withInserted(value, text))
        .filter((value) => isAllowed('rect', name, value))
      expect(allowed).toEqual([])
    },
  )

  test('never names a resource', () => {
    const resources = [
      'javascript:alert(1)',
      'data:image/svg+xml,x',
      'http://host/',
      '//host/',
      'url(http://host/#a)',
      'url(//host/#a)',
      'url(data:x#a)',
      'url(a.svg#b)',
      'url()',
      'image(x)',
      'image-set("x")',
      'expression(1)',
      'var(--a)',
      'attr(href)',
      'env(a)',
    ]
    const given = [
      ...resources,
      ...values.flatMap((value) => resources.map((one) => `${value} ${one}`)),
    ]
    // An id is only a name: it may have a colon.
    const allowed = given.filter((value) => isAllowed('rect', name, value))
    expect(allowed).toEqual([])
  })
})

test('a colon is allowed in names and in references to them only', () => {
  for (const [name, values] of attributes) {
    const allowed = values
      .flatMap((value) => withInserted(value, ':'))
      .filter((value) => isAllowed('rect', name, value))
      // `url(#a:b)`
      .filter((value) => !/#\w+:/.test(value))
    if (name === 'id') expect(allowed).toContain('layer:-1')
    else expect(allowed).toEqual([])
  }
})

test('a declaration of a style sheet has the same values, and no other attribute is a property', () => {
  for (const [name, values] of styles) {
    for (const value of values) {
      expect(isAllowedStyle(name, value)).toBe(true)
      for (const hostile of withInserted(value, '\\')) {
        expect(isAllowedStyle(name, hostile)).toBe(false)
      }
    }
  }
  for (const name of [
    'd',
    'transform',
    'id',
    'viewBox',
    'href',
    'onload',
    'background',
    'behavior',
  ]) {
    expect(isAllowedStyle(name, 'none')).toBe(false)
  }
})

describe('href', () => {
  test.each(['use', 'linearGradient', 'radialGradient', 'pattern'])(
    'of <%s> points at an element of the document',
    (element) => {
      expect(isAllowed(element, 'href', '#part')).toBe(true)
      for (const value of [
        ...['', '#', 'part', ' #part', '#part ', '#a b', '#a\\b', 'file.svg#part', '//host#part'],
        ...[
          'javascript:alert(1)',
          'JAVASCRIPT:alert(1)',
          'data:image/svg+xml,x#part',
          '#a/b',
          '#a?b',
        ],
      ]) {
        expect([value, isAllowed(element, 'href', value)]).toEqual([value, false])
      }
    },
  )

  test('of every other element is refused', () => {
    for (const element of ['a', 'image', 'feImage', 'script', 'rect', 'mask', 'tspan']) {
      expect(isAllowed(element, 'href', '#part')).toBe(false)
    }
  })
})

test('handlers, namespaced and unknown attributes are refused', () => {
  for (const name of [
    ...[
      'onload',
      'onclick',
      'xlink:href',
      'xml:base',
      'xmlns',
      'src',
      'style',
      'class',
      'marker-end',
    ],
    ...['attributeName', 'begin', 'to', 'FILL', 'fill ', '__proto__', 'constructor'],
  ]) {
    expect([name, isAllowed('rect', name, 'none')]).toEqual([name, false])
  }
})

test.each([
  ['svg', 'kept'],
  ['feDropShadow', 'kept'],
  ['a', 'unwrapped'],
  ['switch', 'unwrapped'],
  ['style', 'style'],
  ['script', 'removed'],
  ['foreignObject', 'removed'],
  ['image', 'removed'],
  ['feImage', 'removed'],
  ['marker', 'removed'],
  ['animate', 'removed'],
  ['set', 'removed'],
  ['SVG', 'removed'],
  ['iframe', 'removed'],
])('<%s> is %s', (name, expected) => {
  expect(classifyElement(name)).toBe(expected as ReturnType<typeof classifyElement>)
})
