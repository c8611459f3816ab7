import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema, unknownField } from '#lib/unprocessable.ts'
import { parseColor } from './colors.ts'
import {
  type ColorName,
  colorNames,
  defaultTheme,
  type Palette,
  type Scheme,
  type Theme,
} from './theme.ts'

const nameCharsMax = 64
const fontsMax = 8
const fontsCharsMax = 300

const strict = <T extends TProperties>(fields: T) =>
  Type.Object(fields, { additionalProperties: false })
const color = Type.String({ description: '`#rgb`, `#rrggbb`, `#rrggbbaa` or `oklch(…)`.' })
const palette = strict(Object.fromEntries(colorNames.map((name) => [name, Type.Optional(color)])))
export const themeBody = strict({
  product_name: Type.Optional(
    Type.String({ description: `1 to ${nameCharsMax} characters on one line.` }),
  ),
  mode: Type.Optional(
    Type.Union([Type.Literal('light'), Type.Literal('dark'), Type.Literal('system')]),
  ),
  colors: Type.Optional(strict({ light: Type.Optional(palette), dark: Type.Optional(palette) })),
  radius_px: Type.Optional(Type.Integer({ minimum: 0, maximum: 32 })),
  font_family: Type.Optional(
    Type.String({
      description: `Up to ${fontsMax} families, separated by commas.`,
      maxLength: fontsCharsMax,
    }),
  ),
  font_scale: Type.Optional(Type.Number({ minimum: 0.75, maximum: 1.5 })),
  logo_url: Type.Optional(
    Type.String({
      description: 'Ignored, so that a theme can be sent back as it was read.',
    }),
  ),
})
export const emptyBody = strict({})
const themeChecker = compileChecker(themeBody)

type ThemeFields = Static<typeof themeBody>

export type ParsedTheme = {
  readonly theme: Theme
  /** The fields whose colours are outside the sRGB gamut. */
  readonly outOfGamut: readonly string[]
}

/** Missing and null fields have their default. Throws an `AppError` of status 422. */
export function parseTheme(body: unknown): ParsedTheme {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const fields = withoutNulls(body)
  const unknown = Object.keys(body).find((name) => !Object.hasOwn(themeBody.properties, name))
  if (unknown !== undefined) throw unknownField(unknown)
  if (!themeChecker.check(fields)) throw refusedBySchema(themeChecker.firstError(fields))
  const outOfGamut: string[] = []
  const theme: Theme = {
    productName: parseName(fields.product_name ?? defaultTheme.productName),
    mode: fields.mode ?? defaultTheme.mode,
    colors: {
      light: parsePalette('light', fields.colors, outOfGamut),
      dark: parsePalette('dark', fields.colors, outOfGamut),
    },
    radiusPx: fields.radius_px ?? defaultTheme.radiusPx,
    fonts: fields.font_family === undefined ? defaultTheme.fonts : parseFonts(fields.font_family),
    fontScale: fields.font_scale ?? defaultTheme.fontScale,
  }
  return { theme, outOfGamut }
}

const formats = ['json', 'css', 'dtcg'] as const

export type ThemeFormat = (typeof formats)[number]

export const themeQuery = Type.Object({
  format: Type.Union(
    formats.map((name) => Type.Literal(name)),
    { description: '`dtcg`: design tokens.', default: 'json' },
  ),
})

function parseName(text: string): string {
  const name = text.trim()
  if (name.length < 1 || name.length > nameCharsMax) {
    throw refused('product_name', `"product_name" must have 1 to ${nameCharsMax} characters.`)
  }
  // Control characters, line and paragraph separators, and bidirectional overrides.
  if (/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u.test(name) || !name.isWellFormed()) {
    throw refused('product_name', '"product_name" must be plain text on one line.')
  }
  return name
}

function parsePalette(
  scheme: Scheme,
  colors: ThemeFields['colors'],
  outOfGamut: string[],
): Palette {
  const fields: Partial<Record<string, string>> = colors?.[scheme] ?? {}
  const parse = (name: ColorName): [ColorName, string] => {
    const text = fields[name]
    if (text === undefined) return [name, defaultTheme.colors[scheme][name]]
    const path = `colors.${scheme}.${name}`
    const color = parseColor(text)
    if (color === null) {
      const sentence = `"${path}" must be #rgb, #rrggbb, #rrggbbaa or oklch(lightness chroma hue).`
      throw refused(path, sentence, 'invalid_color')
    }
    if (color.isOutOfGamut) outOfGamut.push(path)
    return [name, color.hex]
  }
  return { ...defaultTheme.colors[scheme], ...Object.fromEntries(colorNames.map(parse)) }
}

/** Excludes everything that could end a CSS declaration or start a function. */
const fontForm = /^[\p{L}_-][\p{L}\p{N}_-]*(?: [\p{L}\p{N}_-]+)*$/u

function parseFonts(text: string): readonly string[] {
  const fonts = text.split(',').map((name) => name.trim().replace(/^(["'])(.*)\1$/, '$2'))
  if (fonts.length > fontsMax || !fonts.every((font) => fontForm.test(font))) {
    const sentence = `"font_family" must name 1 to ${fontsMax} font families, separated by commas.`
    throw refused('font_family', sentence, 'invalid_font_family')
  }
  return fonts
}
