import { describe, expect, test } from 'bun:test'
import { errorOf, outcome, usePortalGateway } from '#test/support/portal-gateway.ts'

const fixture = usePortalGateway()

const endpoints = ['PUT /v1/branding/theme', 'POST /v1/branding/theme/preview']

describe.each(endpoints)('%s', (endpoint) => {
  const ask = (json: unknown) => fixture.gateway.send('admins', endpoint, { json })

  test.each(['[]', '"x"', 'null', '7'])('requires an object, not %s', async (text) => {
    expect(outcome(await ask(text))).toBe('422 unprocessable')
  })

  test.each(['{', ' ', '{"mode":"dark"}}'])('requires JSON, not %p', async (text) => {
    expect(outcome(await ask(text))).toBe('400 malformed_json')
  })

  test('accepts at most 64 KiB', async () => {
    const padded = (bytes: number) => `${' '.repeat(bytes - 2)}{}`
    expect(outcome(await ask(padded(65_536)))).toBe('200')
    expect(outcome(await ask(padded(65_537)))).toBe('413 request_too_large')
  })

  const unknown: [unknown, string][] = [
    [{ colour: 'red' }, 'colour'],
    [{ colour: null }, 'colour'],
    ['{"__proto__":{"mode":"dark"}}', '__proto__'],
    [{ colors: { sepia: {} } }, 'colors.sepia'],
    [{ colors: { light: { accent: '#fff' } } }, 'colors.light.accent'],
    ['{"colors":{"light":{"__proto__":"#fff"}}}', 'colors.light.__proto__'],
  ]
  test.each(unknown)('refuses unknown fields: %j', async (json, param) => {
    expect(errorOf(await ask(json))).toEqual([422, 'unknown_field', param])
  })

  const wrong: [object, string][] = [
    [{ mode: 'sepia' }, 'mode'],
    [{ mode: 1 }, 'mode'],
    [{ radius_px: -1 }, 'radius_px'],
    [{ radius_px: 33 }, 'radius_px'],
    [{ radius_px: 1.5 }, 'radius_px'],
    [{ radius_px: '8' }, 'radius_px'],
    [{ font_scale: 0.74 }, 'font_scale'],
    [{ font_scale: 1.51 }, 'font_scale'],
    [{ font_scale: '1' }, 'font_scale'],
    [{ product_name: '' }, 'product_name'],
    [{ product_name: '   ' }, 'product_name'],
    [{ product_name: 'x'.repeat(65) }, 'product_name'],
    [{ product_name: 'a\nb' }, 'product_name'],
    [{ product_name: 'a\0b' }, 'product_name'],
    [{ product_name: 'a\u202eb' }, 'product_name'],
    [{ product_name: 'half \ud83d' }, 'product_name'],
    [{ colors: [] }, 'colors'],
    [{ colors: { light: null } }, 'colors.light'],
    [{ colors: { light: { text: 5 } } }, 'colors.light.text'],
    [{ colors: { dark: { text: null } } }, 'colors.dark.text'],
    [{ logo_url: 5 }, 'logo_url'],
  ]
  test.each(wrong)('refuses %j', async (json, param) => {
    const { status, body } = await ask(json)
    expect([status, Object(body['error']).param]).toEqual([422, param])
  })

  const invalidColors = [
    ...['', 'red', '#', '#12', '#1234', '#12345', '#1234567', '#123456789', '#ggg', 'fff'],
    ...['rgb(0,0,0)', 'var(--x)', 'url(#x)', 'transparent', '#fff;', '#fff}', '#fff/**/'],
    ...['oklch()', 'oklch(1 0)', 'oklch(1,0,0)', 'oklch(1 0 0', 'oklch(a b c)', 'oklch(1 0 0 0)'],
    ...['oklch(1e999 0 0)', 'oklch(50% 1e999 0)', 'oklch(from red l c h)', 'oklch(1 0 0deg;)'],
    ...['oklch(1 0 0px)', `oklch(1 0 0${' '.repeat(100)})`, 'oklch(1. 0 0)', 'expression(1)'],
  ]
  test.each(invalidColors)('%p is not a colour', async (text) => {
    expect(errorOf(await ask({ colors: { dark: { danger: text } } }))).toEqual([
      422,
      'invalid_color',
      'colors.dark.danger',
    ])
  })

  const invalidFonts = [
    ...[
      '',
      ' ',
      ',',
      'Inter,',
      'a;b',
      'a}b',
      'a{b',
      'url(x)',
      'a"b',
      '"a',
      `"a'`,
      'a\\62',
      'a/*b*/',
    ],
    ...['a\nb', '@import', '<b>', 'var(--x)', '3 Sans', 'a,b,c,d,e,f,g,h,i', 'a  b', 'a!important'],
  ]
  test.each(invalidFonts)('%p is not a font family', async (text) => {
    expect(errorOf(await ask({ font_family: text }))).toEqual([
      422,
      'invalid_font_family',
      'font_family',
    ])
  })

  test('accepts at most 300 characters of font families', async () => {
    expect(outcome(await ask({ font_family: 'x'.repeat(300) }))).toBe('200')
    expect(errorOf(await ask({ font_family: 'x'.repeat(301) }))).toEqual([
      422,
      'unprocessable',
      'font_family',
    ])
  })

  const edges: object[] = [
    { radius_px: 0, font_scale: 0.75, product_name: 'x' },
    { radius_px: 32, font_scale: 1.5, product_name: 'x'.repeat(64) },
    { font_family: 'a, b, c, d, e, f, g, h' },
    { font_family: '-apple-system, ヒラギノ角ゴ Pro W3' },
  ]
  test.each(edges)('accepts %j', async (json) => {
    expect(outcome(await ask(json))).toBe('200')
  })
})
