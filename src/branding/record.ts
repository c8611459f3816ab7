import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { channelsOfHex, contrastOf, type PairContrast } from './colors.ts'
import type { ParsedTheme } from './schema.ts'
import { type ColorName, colorNames, type Scheme, type Theme } from './theme.ts'

const ofEachColor = <T extends TSchema>(schema: T) =>
  Type.Object(Object.fromEntries(colorNames.map((name) => [name, schema])) as Record<ColorName, T>)
const palette = ofEachColor(Type.String({ description: '`#rrggbb` or `#rrggbbaa`.' }))

const themeFields = {
  product_name: Type.String(),
  mode: Type.Union([Type.Literal('light'), Type.Literal('dark'), Type.Literal('system')], {
    description: '`system` follows the preference of the device.',
  }),
  colors: Type.Object({ light: palette, dark: palette }),
  radius_px: Type.Integer(),
  font_family: Type.String({
    description: 'Font families in order of preference, separated by commas.',
  }),
  font_scale: Type.Number({ description: 'Multiplies all text sizes.' }),
}

/** Without the logo. */
const plainTheme = Type.Object(themeFields)
type PlainTheme = Static<typeof plainTheme>

export const themeRecord = Type.Object(
  {
    ...themeFields,
    logo_url: Type.String({
      description: 'The signed path of the logo; it needs no credential.',
    }),
  },
  { $id: 'Theme' },
)
export type ThemeRecord = Static<typeof themeRecord>

const colorTokens = ofEachColor(
  Type.Object({
    $value: Type.Object({
      colorSpace: Type.Literal('srgb'),
      components: Type.Array(Type.Number()),
      alpha: Type.Number(),
      hex: Type.String(),
    }),
  }),
)

export const designTokensRecord = Type.Object(
  {
    color: Type.Object({ $type: Type.Literal('color'), light: colorTokens, dark: colorTokens }),
    radius: Type.Object({
      $type: Type.Literal('dimension'),
      $value: Type.Object({ value: Type.Number(), unit: Type.Literal('px') }),
    }),
    font: Type.Object({
      family: Type.Object({
        $type: Type.Literal('fontFamily'),
        $value: Type.Array(Type.String()),
      }),
      scale: Type.Object({ $type: Type.Literal('number'), $value: Type.Number() }),
    }),
  },
  {
    $id: 'DesignTokens',
    description: 'The theme in the format of the Design Tokens Community Group, 2025.10.',
  },
)
type DesignTokens = Static<typeof designTokensRecord>

const cssVariablesRecord = Type.Record(Type.String(), Type.String())

export const themePreview = Type.Object(
  {
    theme: plainTheme,
    css_variables: Type.Object(
      { root: cssVariablesRecord, light: cssVariablesRecord, dark: cssVariablesRecord },
      { description: 'CSS custom properties: `root` for both schemes, and one set for each.' },
    ),
    contrast: Type.Array(
      Type.Object({
        pair: Type.String({ description: 'Scheme, foreground and background.' }),
        ratio: Type.Number({ description: 'WCAG 2.2 contrast ratio, from 1 to 21.' }),
        required: Type.Number(),
        pass: Type.Boolean(),
        suggestion: nullable(Type.String(), 'The nearest passing colour, for a failing pair.'),
      }),
    ),
    warnings: Type.Array(
      Type.Object({
        code: Type.Union([Type.Literal('contrast_too_low'), Type.Literal('color_out_of_gamut')]),
        param: Type.String({ description: 'The field of the colour.' }),
        message: Type.String(),
      }),
    ),
  },
  { $id: 'ThemePreview' },
)
type ThemePreview = Static<typeof themePreview>

/** The theme as the API returns it, without the logo. */
export function renderTheme(theme: Theme): PlainTheme {
  const { productName, mode, colors, radiusPx, fonts, fontScale } = theme
  return {
    product_name: productName,
    mode,
    colors,
    radius_px: radiusPx,
    font_family: fonts.join(', '),
    font_scale: fontScale,
  }
}

export function renderPreview({ theme, outOfGamut }: ParsedTheme): ThemePreview {
  const pairs = contrastOf(theme)
  return {
    theme: renderTheme(theme),
    css_variables: cssVariables(theme),
    contrast: pairs.map(({ scheme, foreground, background, passes, ...pair }) => ({
      pair: `${scheme}.${foreground}/${background}`,
      ratio: pair.ratio,
      required: pair.required,
      pass: passes,
      suggestion: pair.suggestion,
    })),
    warnings: [
      ...pairs
        .filter(({ passes }) => !passes)
        .map((pair) => ({
          code: 'contrast_too_low' as const,
          param: contrastParam(pair),
          message: contrastMessage(pair),
        })),
      ...outOfGamut.map((param) => ({
        code: 'color_out_of_gamut' as const,
        param,
        message: `"${param}" is outside the sRGB gamut; its chroma was reduced.`,
      })),
    ],
  }
}

/** The body field of the foreground colour. */
export function contrastParam({ scheme, foreground }: PairContrast): string {
  return `colors.${scheme}.${foreground}`
}

export function contrastMessage({ scheme, ...pair }: PairContrast): string {
  const { foreground, background, ratio, required, suggestion } = pair
  const hint = suggestion === null ? '' : ` ${suggestion} would pass.`
  return `In the ${scheme} scheme, "${foreground}" on "${background}" has a contrast of ${ratio}; at least ${required} is required.${hint}`
}

/** CSS custom properties by name. */
type CssVariables = Readonly<Record<string, string>>

/** The variables of each scheme; `root` has the ones that both share. */
export function cssVariables(theme: Theme): Record<'root' | Scheme, CssVariables> {
  const colorVariables = (scheme: Scheme) =>
    Object.fromEntries(
      colorNames.map((name) => [`--brand-${name.replace('_', '-')}`, theme.colors[scheme][name]]),
    )
  return {
    root: {
      '--brand-radius': `${theme.radiusPx}px`,
      '--brand-font-family': theme.fonts.map(quoteFont).join(', '),
      '--brand-font-scale': String(theme.fontScale),
    },
    light: colorVariables('light'),
    dark: colorVariables('dark'),
  }
}

/** A style sheet that a portal may link to. */
export function styleSheet(theme: Theme): string {
  const { root, light, dark } = cssVariables(theme)
  switch (theme.mode) {
    case 'light':
      return rootRule({ 'color-scheme': 'light', ...root, ...light })
    case 'dark':
      return rootRule({ 'color-scheme': 'dark', ...root, ...dark })
    case 'system':
      return (
        rootRule({ 'color-scheme': 'light dark', ...root, ...light }) +
        `@media (prefers-color-scheme: dark) {\n${rootRule(dark)}}\n`
      )
  }
}

/** Keywords of CSS; in quotes they would be names of ordinary families. */
const genericFonts: ReadonlySet<string> = new Set([
  ...['serif', 'sans-serif', 'monospace', 'cursive', 'fantasy', 'math', 'emoji', 'system-ui'],
  ...['ui-serif', 'ui-sans-serif', 'ui-monospace', 'ui-rounded', '-apple-system'],
])

function quoteFont(name: string): string {
  return genericFonts.has(name) ? name : `"${name}"`
}

function rootRule(declarations: CssVariables): string {
  const lines = Object.entries(declarations).map(([name, value]) => `  ${name}: ${value};\n`)
  return `:root {\n${lines.join('')}}\n`
}

/** The theme in the format of the Design Tokens Community Group, 2025.10. */
export function designTokens({ colors, radiusPx, fonts, fontScale }: Theme): DesignTokens {
  const group = (scheme: Scheme) =>
    Object.fromEntries(
      colorNames.map((name) => [name, { $value: colorToken(colors[scheme][name]) }]),
    ) as Record<ColorName, { $value: ReturnType<typeof colorToken> }>
  return {
    color: { $type: 'color', light: group('light'), dark: group('dark') },
    radius: { $type: 'dimension', $value: { value: radiusPx, unit: 'px' } },
    font: {
      family: { $type: 'fontFamily', $value: [...fonts] },
      scale: { $type: 'number', $value: fontScale },
    },
  }
}

/** Enough to tell eight-bit values apart. */
const tokenDecimals = 4

function colorToken(hex: string) {
  const { rgb, alpha } = channelsOfHex(hex)
  const rounded = (part: number) => Number(part.toFixed(tokenDecimals))
  return {
    colorSpace: 'srgb' as const,
    components: rgb.map(rounded),
    alpha: rounded(alpha),
    hex: hex.slice(0, 7),
  }
}
