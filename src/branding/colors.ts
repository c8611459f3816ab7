import {
  blend,
  type Color,
  clampChroma,
  clampRgb,
  converter,
  formatHex,
  formatHex8,
  modeLrgb,
  modeOklab,
  modeOklch,
  modeRgb,
  parse,
  type Rgb,
  useMode,
  wcagContrast,
} from 'culori/fn'
import { type ColorName, type Palette, type Scheme, schemes, type Theme } from './theme.ts'

// culori/fn knows no colour space until it is registered. Linear RGB is what WCAG luminance uses.
const toRgb = useMode(modeRgb)
useMode(modeLrgb)
useMode(modeOklab)
useMode(modeOklch)
const toOklch = converter('oklch')

export type ParsedColor = {
  /** `#rrggbb` or `#rrggbbaa`, in lower case. */
  readonly hex: string
  /** The colour is outside the sRGB gamut; `hex` has its lightness and hue with less chroma. */
  readonly isOutOfGamut: boolean
}

const colorCharsMax = 100

// culori also accepts named colours, missing parentheses and infinite numbers, and throws on some
// malformed input, so the form is checked first.
const number = '[+-]?(?:\\d+(?:\\.\\d+)?|\\.\\d+)(?:e[+-]?\\d{1,2})?'
const part = `(?:${number}%?|none)`
const hue = `(?:${number}(?:deg|grad|rad|turn)?|none)`
const colorForm = new RegExp(
  `^(?:#(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})|oklch\\(\\s*${part}\\s+${part}\\s+${hue}(?:\\s*/\\s*${part})?\\s*\\))$`,
)

/** Tolerated channel excess: rounding of a colour that is exactly on the edge of the sRGB gamut. */
const gamutTolerance = 0.0005

/** Parses `#rgb`, `#rrggbb`, `#rrggbbaa` or `oklch(…)`; null for anything else. */
export function parseColor(text: string): ParsedColor | null {
  const normalized = text.length > colorCharsMax ? '' : text.trim().toLowerCase()
  const color = colorForm.test(normalized) ? parse(normalized) : undefined
  if (color === undefined) return null
  return { hex: toHex(color), isOutOfGamut: !isInGamut(color) }
}

/** The channels of `#rrggbb` or `#rrggbbaa`, each from 0 to 1. */
export function channelsOfHex(hex: string): { rgb: number[]; alpha: number } {
  const { r, g, b, alpha = 1 } = requireRgb(hex)
  return { rgb: [r, g, b], alpha }
}

/** The contrast of one colour on another (WCAG 2.2, 1.4.3 and 1.4.11). */
export type PairContrast = {
  readonly scheme: Scheme
  readonly foreground: ColorName
  readonly background: ColorName
  /** From 1 to 21, rounded down. */
  readonly ratio: number
  readonly required: number
  readonly passes: boolean
  /** For a failing pair: the nearest colour to the foreground that passes. */
  readonly suggestion: string | null
}

const textRatioMin = 4.5
const controlRatioMin = 3

/** Borders are decorative, so they have no required contrast. */
const pairs: readonly [ColorName, ColorName, number][] = [
  ['text', 'background', textRatioMin],
  ['text', 'surface', textRatioMin],
  ['muted', 'background', textRatioMin],
  ['muted', 'surface', textRatioMin],
  ['on_primary', 'primary', textRatioMin],
  ['primary', 'background', controlRatioMin],
  ['primary', 'surface', controlRatioMin],
  ['success', 'background', controlRatioMin],
  ['warning', 'background', controlRatioMin],
  ['danger', 'background', controlRatioMin],
]

export function contrastOf({ colors }: Pick<Theme, 'colors'>): PairContrast[] {
  return schemes.flatMap((scheme) =>
    pairs.map(([foreground, background, required]) => {
      const backdrop = opaqueBackground(colors[scheme], scheme, background)
      const ratio = wcagContrast(over(colors[scheme][foreground], backdrop), backdrop)
      const passes = ratio >= required
      return {
        scheme,
        foreground,
        background,
        required,
        passes,
        ratio: Math.floor(ratio * 100) / 100,
        suggestion: passes ? null : suggestColor(colors[scheme][foreground], backdrop, required),
      }
    }),
  )
}

/** A translucent surface lies on the page background, and that on a white or black screen. */
function opaqueBackground(palette: Palette, scheme: Scheme, name: ColorName): Color {
  const page = over(palette.background, scheme === 'light' ? '#ffffff' : '#000000')
  return name === 'background' ? page : over(palette[name], page)
}

function over(color: string, backdrop: Color | string): Color {
  return blend([backdrop, color], 'normal', 'rgb')
}

/** Resolution of the lightness search. */
const lightnessSteps = 400

/** The colour of the same hue with the smallest change of lightness that reaches the contrast. */
function suggestColor(hex: string, backdrop: Color, required: number): string | null {
  const color = { ...toOklch(requireRgb(hex)), alpha: 1 }
  // Rounded to eight bits, since that is the colour that will be used.
  const candidate = (step: number) => toHex({ ...color, l: color.l + step / lightnessSteps })
  const passes = (step: number) => wcagContrast(candidate(step), backdrop) >= required
  /** Contrast only grows towards either end of the lightness axis, so a binary search finds the step. */
  const smallestStep = (direction: 1 | -1): number => {
    const available = direction === 1 ? 1 - color.l : color.l
    let [failing, passing] = [-1, Math.floor(available * lightnessSteps)]
    if (!passes(direction * passing)) return Number.POSITIVE_INFINITY
    while (passing - failing > 1) {
      const middle = Math.floor((failing + passing) / 2)
      if (passes(direction * middle)) passing = middle
      else failing = middle
    }
    return passing
  }
  const [darker, lighter] = [smallestStep(-1), smallestStep(1)]
  const nearest = darker <= lighter ? -darker : lighter
  return Number.isFinite(nearest) ? candidate(nearest) : null
}

function isInGamut(color: Color): boolean {
  const { r, g, b } = toRgb(color)
  return [r, g, b].every((part) => part >= -gamutTolerance && part <= 1 + gamutTolerance)
}

/** Reduces the chroma of a colour outside the gamut. */
function toHex(color: Color): string {
  const rgb = clampRgb(toRgb(isInGamut(color) ? color : clampChroma(color, 'oklch')))
  const isOpaque = Math.round((rgb.alpha ?? 1) * 255) === 255
  return isOpaque ? formatHex(rgb) : formatHex8(rgb)
}

function requireRgb(hex: string): Rgb {
  const color = toRgb(hex)
  if (color === undefined) throw new Error(`not a colour: ${hex}`)
  return color
}
