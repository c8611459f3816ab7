import { expect, test } from 'bun:test'
import { converter, modeOklch, useMode } from 'culori/fn'
import { contrastOf, parseColor } from '#branding/colors.ts'
import { defaultTheme } from '#branding/theme.ts'

const accepted: [string, string][] = [
  ['#AbC', '#aabbcc'],
  ['#A1b2C3', '#a1b2c3'],
  ['#a1b2c3FF', '#a1b2c3'],
  ['#a1b2c300', '#a1b2c300'],
  ['oklch(0 0 0)', '#000000'],
  ['oklch(100% 0% 0)', '#ffffff'],
  ['oklch(1 none none)', '#ffffff'],
  ['oklch(62.8% 0.2577 29.23)', '#ff0000'],
  ['oklch(0.8664 0.2948 142.5deg)', '#00ff00'],
  ['oklch(0.452 0.3132 0.733478turn)', '#0000ff'],
  ['oklch(0.968 0.211 109.77)', '#ffff00'],
  ['oklch(.5 0 0)', '#636363'],
  ['oklch(0.5 0 0 / 0.5)', '#63636380'],
  ['oklch(0.5 0 0/50%)', '#63636380'],
  ['oklch(0.5 -1 0)', '#636363'],
  ['oklch(2 0 0 / 7)', '#ffffff'],
]

test.each(accepted)('%s is %s', (text, hex) => {
  expect(parseColor(text)?.hex).toBe(hex)
})

test('the hue may have any CSS angle unit', () => {
  const hues = ['120', '120deg', '480', '-240deg', '2.0943951rad', '133.333333grad']
  const colors = hues.map((hue) => parseColor(`oklch(0.6 0.1 ${hue})`)?.hex)
  expect(new Set(colors).size).toBe(1)
})

test('forms that culori accepts and the API does not are refused', () => {
  for (const text of ['#1234', 'red', 'fff', 'rgb(0 0 0)', 'lab(50% 0 0)', 'oklch(1 0 0']) {
    expect(parseColor(text), text).toBeNull()
  }
})

const toOklch = useMode(modeOklch)

test('a colour outside the sRGB gamut keeps its lightness and hue', () => {
  const color = parseColor('oklch(0.7 0.4 150)')
  expect(color?.isOutOfGamut).toBe(true)
  const oklch = toOklch(color?.hex ?? '')
  expect(oklch?.l).toBeCloseTo(0.7, 2)
  expect(oklch?.c).toBeGreaterThan(0.15)
  expect(oklch?.h).toBeCloseTo(150, -1)
  expect(parseColor('oklch(0.7 0.1 150)')?.isOutOfGamut).toBe(false)
})

test('every sRGB colour survives the way to oklch and back', () => {
  const convert = converter('oklch')
  for (let value = 0; value < 0x1000000; value += 4_111) {
    const hex = `#${value.toString(16).padStart(6, '0')}`
    const { l, c, h = 0 } = convert(hex) ?? { l: 0, c: 0 }
    const text = `oklch(${[l, c, h].map((part) => part.toFixed(8)).join(' ')})`
    expect(parseColor(text)).toEqual({ hex, isOutOfGamut: false })
  }
})

test('a suggestion is the smallest step of lightness that passes', () => {
  const light = { ...defaultTheme.colors.light, text: '#9aa0a6', danger: '#00000010' }
  const pairs = contrastOf({ colors: { ...defaultTheme.colors, light } })
  const suggestionOf = (name: string) =>
    pairs.find(({ foreground, passes }) => foreground === name && !passes)?.suggestion
  expect(suggestionOf('text')).toBe('#72777d')
  // Only its translucency is in the way.
  expect(suggestionOf('danger')).toBe('#000000')
})
