import { expect, test } from 'bun:test'
import { fromHex, fromOklch, toHex, toOklch } from '#branding/colors/color.ts'
import { readColor } from '#branding/colors/read-color.ts'

/** Colours as people write them, and as screens show them. */

const known: [string, string][] = [
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

test.each(known)('%s is %s', (text, hex) => {
  expect(readColor(text)?.hex).toBe(hex)
})

test('a hue may be given in any unit', () => {
  const spellings = ['120', '120deg', '480', '-240deg', '2.0943951rad', '133.333333grad']
  const colors = spellings.map((hue) => readColor(`oklch(0.6 0.1 ${hue})`)?.hex)
  expect(new Set(colors).size).toBe(1)
})

test('what screens cannot show keeps its lightness and hue', () => {
  const read = readColor('oklch(0.7 0.4 150)')
  expect(read?.isReduced).toBe(true)
  const [lightness, chroma, hue] = toOklch(fromHex(read?.hex ?? '').rgb)
  expect(lightness).toBeCloseTo(0.7, 2)
  expect(chroma).toBeGreaterThan(0.15)
  expect(hue).toBeCloseTo(150, -1)
  expect(readColor('oklch(0.7 0.1 150)')?.isReduced).toBe(false)
})

test('every colour of a screen survives the way there and back', () => {
  for (let at = 0; at < 0x1000000; at += 4_111) {
    const hex = `#${at.toString(16).padStart(6, '0')}`
    const { rgb } = fromOklch(toOklch(fromHex(hex).rgb))
    expect(toHex({ rgb, alpha: 1 })).toBe(hex)
  }
})
