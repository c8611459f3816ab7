import type { ColorName, Palette, Scheme, Theme } from '#branding/theme.ts'
import { schemes } from '#branding/theme.ts'
import { fromHex, fromOklch, over, type Rgb, toHex, toLinear, toOklch } from './color.ts'

/** How well one colour can be told from another that it lies on (WCAG 2.2, 1.4.3 and 1.4.11). */
export type PairContrast = {
  readonly scheme: Scheme
  readonly foreground: ColorName
  readonly background: ColorName
  /** From 1 to 21, rounded down. */
  readonly ratio: number
  readonly required: number
  readonly passes: boolean
  /** For a pair that does not pass: the colour nearest to the foreground that would. */
  readonly suggestion: string | null
}

const requiredOfText = 4.5
const requiredOfControls = 3

/** A border is left out: it divides, and nothing is lost on those who do not see it. */
const pairs: readonly [ColorName, ColorName, number][] = [
  ['text', 'background', requiredOfText],
  ['text', 'surface', requiredOfText],
  ['muted', 'background', requiredOfText],
  ['muted', 'surface', requiredOfText],
  ['on_primary', 'primary', requiredOfText],
  ['primary', 'background', requiredOfControls],
  ['primary', 'surface', requiredOfControls],
  ['success', 'background', requiredOfControls],
  ['warning', 'background', requiredOfControls],
  ['danger', 'background', requiredOfControls],
]

export function contrastOf({ colors }: Pick<Theme, 'colors'>): PairContrast[] {
  return schemes.flatMap((scheme) =>
    pairs.map(([foreground, background, required]) => {
      const below = seen(colors[scheme], scheme, background)
      const ratio = ratioOf(over(fromHex(colors[scheme][foreground]), below), below)
      const passes = ratio >= required
      return {
        scheme,
        foreground,
        background,
        required,
        passes,
        ratio: Math.floor(ratio * 100) / 100,
        suggestion: passes ? null : nearest(colors[scheme][foreground], below, required),
      }
    }),
  )
}

/** What a background looks like: one that shines through lies on the page, and that on the screen. */
function seen(palette: Palette, scheme: Scheme, name: ColorName): Rgb {
  const screen: Rgb = scheme === 'light' ? [1, 1, 1] : [0, 0, 0]
  const page = over(fromHex(palette.background), screen)
  return name === 'background' ? page : over(fromHex(palette[name]), page)
}

function ratioOf(one: Rgb, other: Rgb): number {
  const [first, second] = [luminanceOf(one), luminanceOf(other)]
  return (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05)
}

function luminanceOf([red, green, blue]: Rgb): number {
  return 0.2126 * toLinear(red) + 0.7152 * toLinear(green) + 0.0722 * toLinear(blue)
}

/** How finely a lightness is looked for. */
const lightnessSteps = 400

/** Of the same hue, and as little darker or lighter as it takes. */
function nearest(hex: string, below: Rgb, required: number): string | null {
  const [lightness, chroma, hue] = toOklch(fromHex(hex).rgb)
  for (let step = 0; step <= lightnessSteps; step++) {
    for (const candidate of [
      lightness - step / lightnessSteps,
      lightness + step / lightnessSteps,
    ]) {
      if (candidate < 0 || candidate > 1) continue
      const found = toHex({ rgb: fromOklch([candidate, chroma, hue]).rgb, alpha: 1 })
      // The rounded colour is the one that will be used.
      if (ratioOf(fromHex(found).rgb, below) >= required) return found
    }
  }
  return null
}
