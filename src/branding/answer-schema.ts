import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { type ColorName, colorNames } from './theme.ts'

/** What `/v1/branding` answers with. */

const ofEachColor = <T extends TSchema>(schema: T) =>
  Type.Object(Object.fromEntries(colorNames.map((name) => [name, schema])) as Record<ColorName, T>)
const palette = ofEachColor(Type.String({ description: '`#rrggbb` or `#rrggbbaa`.' }))

const themeFields = {
  product_name: Type.String(),
  mode: Type.Union([Type.Literal('light'), Type.Literal('dark'), Type.Literal('system')], {
    description: "`system`: what the reader's device prefers.",
  }),
  colors: Type.Object({ light: palette, dark: palette }),
  radius_px: Type.Integer(),
  font_family: Type.String({ description: 'Families in the order in which they are tried.' }),
  font_scale: Type.Number({ description: 'A factor of the size of all text.' }),
}

/** A theme without the logo, as a preview has it. */
const plainTheme = Type.Object(themeFields)
export type PlainTheme = Static<typeof plainTheme>

export const themeRecord = Type.Object(
  {
    ...themeFields,
    logo_url: Type.String({
      description: 'The path of the logo, signed: whoever has it needs no credential.',
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
export type DesignTokens = Static<typeof designTokensRecord>

const cssVariables = Type.Record(Type.String(), Type.String())

export const themePreview = Type.Object(
  {
    theme: plainTheme,
    css_variables: Type.Object(
      { root: cssVariables, light: cssVariables, dark: cssVariables },
      { description: 'CSS custom properties: those of both schemes, and those of each.' },
    ),
    contrast: Type.Array(
      Type.Object({
        pair: Type.String({ description: 'Scheme, foreground and background.' }),
        ratio: Type.Number({ description: 'From 1 to 21, as WCAG 2.2 counts it.' }),
        required: Type.Number(),
        pass: Type.Boolean(),
        suggestion: nullable(
          Type.String(),
          'The nearest colour that would pass, where it does not.',
        ),
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
export type ThemePreview = Static<typeof themePreview>

const side = () => nullable(Type.Number(), 'In pixels; null for a drawing that does not say.')

export const logoRecord = Type.Object(
  {
    content_type: Type.Union([
      Type.Literal('image/png'),
      Type.Literal('image/webp'),
      Type.Literal('image/svg+xml'),
    ]),
    bytes: Type.Integer({ description: 'Of the logo as it is kept and shown.' }),
    sha256: Type.String(),
    width: side(),
    height: side(),
    sanitized: Type.Array(Type.String(), { description: 'What was taken out of it.' }),
    logo_url: Type.String({ description: 'Its path, signed, as in the theme.' }),
  },
  { $id: 'Logo' },
)
export type LogoRecord = Static<typeof logoRecord>
