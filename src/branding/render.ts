import type { PlainTheme, ThemePreview } from './answer-schema.ts'
import { describe, pathOf } from './branding.ts'
import { contrastOf } from './colors/contrast.ts'
import type { ReadTheme } from './schema.ts'
import { cssVariables } from './style-sheet.ts'
import type { Theme } from './theme.ts'

/** The theme as callers read and write it. */
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

export function renderPreview({ theme, reduced }: ReadTheme): ThemePreview {
  const pairs = contrastOf(theme)
  const dull = pairs.filter(({ passes }) => !passes)
  return {
    theme: renderTheme(theme),
    css_variables: cssVariables(theme),
    contrast: pairs.map(({ scheme, foreground, background, ratio, required, ...rest }) => ({
      pair: `${scheme}.${foreground}/${background}`,
      ratio,
      required,
      pass: rest.passes,
      suggestion: rest.suggestion,
    })),
    warnings: [
      ...dull.map((pair) => ({
        code: 'contrast_too_low' as const,
        param: pathOf(pair),
        message: describe(pair),
      })),
      ...reduced.map((param) => ({
        code: 'color_out_of_gamut' as const,
        param,
        message: `Screens cannot show "${param}"; the nearest colour of the same hue is taken.`,
      })),
    ],
  }
}
