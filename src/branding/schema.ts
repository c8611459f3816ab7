import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema, unknownField } from '#lib/unprocessable.ts'
import { readColor } from './colors/read-color.ts'
import {
  type ColorName,
  colorNames,
  defaultTheme,
  type Palette,
  type Scheme,
  type Theme,
} from './theme.ts'

/** The wire shape of a theme. A field that is absent or null is the one of the default theme. */

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
      description: `Up to ${fontsMax} families, divided by commas.`,
      maxLength: fontsCharsMax,
    }),
  ),
  font_scale: Type.Optional(Type.Number({ minimum: 0.75, maximum: 1.5 })),
  logo_url: Type.Optional(
    Type.String({
      description: 'A theme may be sent back as it was read; this part of it is not set here.',
    }),
  ),
})
export const emptyBody = strict({})
const themeChecker = compileChecker(themeBody)
const noFields = compileChecker(emptyBody)

type ThemeFields = Static<typeof themeBody>

export type ReadTheme = {
  readonly theme: Theme
  /** The fields of colours that screens cannot show. */
  readonly reduced: readonly string[]
}

/** The theme of a body; throws an `AppError` of status 422. */
export function readTheme(body: unknown): ReadTheme {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const given = withoutNulls(body)
  const unknown = Object.keys(body).find((name) => !Object.hasOwn(themeBody.properties, name))
  if (unknown !== undefined) throw unknownField(unknown)
  if (!themeChecker.check(given)) throw refusedBySchema(themeChecker.firstError(given))
  const reduced: string[] = []
  const theme: Theme = {
    productName: readName(given.product_name ?? defaultTheme.productName),
    mode: given.mode ?? defaultTheme.mode,
    colors: {
      light: readPalette('light', given.colors, reduced),
      dark: readPalette('dark', given.colors, reduced),
    },
    radiusPx: given.radius_px ?? defaultTheme.radiusPx,
    fonts: given.font_family === undefined ? defaultTheme.fonts : readFonts(given.font_family),
    fontScale: given.font_scale ?? defaultTheme.fontScale,
  }
  return { theme, reduced }
}

/** A body that has nothing to say. */
export function readNothing(body: unknown): void {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  if (!noFields.check(body)) throw refusedBySchema(noFields.firstError(body))
}

const formats = ['json', 'css', 'dtcg'] as const

export type ThemeFormat = (typeof formats)[number]

export const themeQuery = Type.Object({
  format: Type.Optional(
    Type.Union(
      formats.map((name) => Type.Literal(name)),
      { description: '`dtcg`: design tokens.', default: 'json' },
    ),
  ),
})

export function readFormat({ format = 'json' }: Readonly<Record<string, string | undefined>>) {
  const known = formats.find((name) => name === format)
  if (known !== undefined) return known
  throw refused('format', `"format" must be one of ${formats.join(', ')}.`)
}

function readName(given: string): string {
  const name = given.trim()
  if (name.length < 1 || name.length > nameCharsMax) {
    throw refused('product_name', `"product_name" must have 1 to ${nameCharsMax} characters.`)
  }
  // Control characters, line and paragraph separators, and what turns the direction of text.
  if (/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u.test(name) || !name.isWellFormed()) {
    throw refused('product_name', '"product_name" must be plain text on one line.')
  }
  return name
}

function readPalette(scheme: Scheme, colors: ThemeFields['colors'], reduced: string[]): Palette {
  const given: Partial<Record<string, string>> = colors?.[scheme] ?? {}
  const read = (name: ColorName): [ColorName, string] => {
    const text = given[name]
    if (text === undefined) return [name, defaultTheme.colors[scheme][name]]
    const path = `colors.${scheme}.${name}`
    const color = readColor(text)
    if (color === null) {
      const sentence = `"${path}" must be #rgb, #rrggbb, #rrggbbaa or oklch(lightness chroma hue).`
      throw refused(path, sentence, 'invalid_color')
    }
    if (color.isReduced) reduced.push(path)
    return [name, color.hex]
  }
  return { ...defaultTheme.colors[scheme], ...Object.fromEntries(colorNames.map(read)) }
}

/** Nothing that could end a declaration of a style sheet, or begin a function. */
const fontForm = /^[\p{L}_-][\p{L}\p{N}_-]*(?: [\p{L}\p{N}_-]+)*$/u

function readFonts(text: string): readonly string[] {
  const fonts = text.split(',').map((name) => name.trim().replace(/^(["'])(.*)\1$/, '$2'))
  if (fonts.length > fontsMax || !fonts.every((font) => fontForm.test(font))) {
    const sentence = `"font_family" must name 1 to ${fontsMax} font families, divided by commas.`
    throw refused('font_family', sentence, 'invalid_font_family')
  }
  return fonts
}
