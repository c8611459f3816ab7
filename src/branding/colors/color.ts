/** A colour of sRGB; everything from 0 to 1. */
export type Rgb = readonly [red: number, green: number, blue: number]
export type Color = { readonly rgb: Rgb; readonly alpha: number }

/** Lightness and chroma from 0 on, the hue in degrees. */
export type Oklch = readonly [lightness: number, chroma: number, hue: number]

/** `#rrggbb`, or `#rrggbbaa` where something shines through. */
export function toHex({ rgb, alpha }: Color): string {
  const digits = [...rgb, alpha].map((part) =>
    Math.round(part * 255)
      .toString(16)
      .padStart(2, '0'),
  )
  return `#${digits.slice(0, digits[3] === 'ff' ? 3 : 4).join('')}`
}

/** Of `#rrggbb` and `#rrggbbaa`. */
export function fromHex(hex: string): Color {
  const part = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16) / 255
  return { rgb: [part(1), part(3), part(5)], alpha: hex.length > 7 ? part(7) : 1 }
}

/** What is seen of a colour that lies over an opaque one. */
export function over({ rgb, alpha }: Color, below: Rgb): Rgb {
  const mix = (at: 0 | 1 | 2) => rgb[at] * alpha + below[at] * (1 - alpha)
  return [mix(0), mix(1), mix(2)]
}

/** Without the curve that screens bend it by. */
export function toLinear(part: number): number {
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
}

function fromLinear(part: number): number {
  return part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055
}

export function toOklch(rgb: Rgb): Oklch {
  const [red, green, blue] = [toLinear(rgb[0]), toLinear(rgb[1]), toLinear(rgb[2])]
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
  const medium = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
  const lightness = 0.2104542553 * long + 0.793617785 * medium - 0.0040720468 * short
  const a = 1.9779984951 * long - 2.428592205 * medium + 0.4505937099 * short
  const b = 0.0259040371 * long + 0.7827717662 * medium - 0.808675766 * short
  return [lightness, Math.hypot(a, b), (Math.atan2(b, a) * 180) / Math.PI]
}

/** Screens show a little less than the formula asks for; nobody sees that. */
const gamutSlack = 0.0005
/** Halvings of the chroma until it fits, which is finer than a step of eight bits. */
const chromaSteps = 16

/** The colour that a screen can show: of the same lightness and hue, with as much chroma as it has. */
export function fromOklch([lightness, chroma, hue]: Oklch): { rgb: Rgb; isReduced: boolean } {
  const exact = unbounded([lightness, chroma, hue])
  if (isShown(exact)) return { rgb: bounded(exact), isReduced: false }
  let [most, least] = [chroma, 0]
  for (let step = 0; step < chromaSteps; step++) {
    const middle = (most + least) / 2
    if (isShown(unbounded([lightness, middle, hue]))) least = middle
    else most = middle
  }
  return { rgb: bounded(unbounded([lightness, least, hue])), isReduced: true }
}

function unbounded([lightness, chroma, hue]: Oklch): Rgb {
  const angle = (hue * Math.PI) / 180
  const [a, b] = [chroma * Math.cos(angle), chroma * Math.sin(angle)]
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  return [
    fromLinear(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
    fromLinear(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
    fromLinear(-0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short),
  ]
}

function isShown(rgb: Rgb): boolean {
  return rgb.every((part) => part >= -gamutSlack && part <= 1 + gamutSlack)
}

function bounded(rgb: Rgb): Rgb {
  const bound = (part: number) => Math.min(1, Math.max(0, part))
  return [bound(rgb[0]), bound(rgb[1]), bound(rgb[2])]
}
