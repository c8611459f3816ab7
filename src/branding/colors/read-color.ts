import { fromOklch, toHex } from './color.ts'

export type ReadColor = {
  /** `#rrggbb` or `#rrggbbaa`, in lower case. */
  readonly hex: string
  /** Whether screens cannot show what was asked for, so that this is as near as they come. */
  readonly isReduced: boolean
}

const colorCharsMax = 100
const hexForm = /^#(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})$/i

/** Of `#rgb`, `#rrggbb`, `#rrggbbaa` or `oklch(…)`; null for anything else. */
export function readColor(text: string): ReadColor | null {
  if (text.length > colorCharsMax) return null
  const given = text.trim()
  return hexForm.test(given) ? { hex: spell(given), isReduced: false } : readOklch(given)
}

function spell(hex: string): string {
  const lower = hex.toLowerCase()
  const long = lower.length === 4 ? lower.replace(/[0-9a-f]/g, '$&$&') : lower
  return long.length === 9 && long.endsWith('ff') ? long.slice(0, 7) : long
}

const number = '[+-]?(?:\\d+(?:\\.\\d+)?|\\.\\d+)(?:e[+-]?\\d{1,3})?'
const part = `(${number}%?|none)`
const oklch = new RegExp(
  `^oklch\\(\\s*${part}\\s+${part}\\s+(${number}(?:deg|grad|rad|turn)?|none)(?:\\s*/\\s*${part})?\\s*\\)$`,
  'i',
)

/** What 100% of the chroma is, as CSS has it. */
const fullChroma = 0.4

function readOklch(text: string): ReadColor | null {
  const found = oklch.exec(text)
  if (found === null) return null
  const [, lightness = '', chroma = '', hue = '', opacity = '1'] = found
  const light = readPart(lightness, 1)
  const saturated = readPart(chroma, fullChroma)
  const angle = readAngle(hue)
  const alpha = readPart(opacity, 1)
  if (![light, saturated, angle, alpha].every(Number.isFinite)) return null
  const { rgb, isReduced } = fromOklch([toUnit(light), Math.max(0, saturated), angle])
  return { hex: toHex({ rgb, alpha: toUnit(alpha) }), isReduced }
}

/** What is below nothing or above everything counts as that, as in CSS. */
function toUnit(part: number): number {
  return Math.min(1, Math.max(0, part))
}

function readPart(text: string, full: number): number {
  if (text.toLowerCase() === 'none') return 0
  const value = Number.parseFloat(text)
  return text.endsWith('%') ? (value / 100) * full : value
}

const degrees: Readonly<Record<string, number>> = {
  deg: 1,
  grad: 0.9,
  rad: 180 / Math.PI,
  turn: 360,
}

function readAngle(text: string): number {
  if (text.toLowerCase() === 'none') return 0
  const unit = /[a-z]+$/i.exec(text)?.[0].toLowerCase() ?? 'deg'
  return Number.parseFloat(text) * (degrees[unit] ?? 1)
}
