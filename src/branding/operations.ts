import { Type } from '@sinclair/typebox'
import { ifMatchHeader, ifNoneMatchHeader } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { designTokensRecord, themePreview, themeRecord } from './answer-schema.ts'
import { cssVariables, renderTheme, styleSheet } from './render.ts'
import { emptyBody, themeBody, themeQuery } from './schema.ts'

import { defaultTheme } from './theme.ts'

const tag = 'Branding'
const etag = 'The tag of the theme and of the logo in it.'
const theme = { ...renderTheme(defaultTheme), logo_url: '/v1/branding/logo?v=0d5f1b7c93ae&sig=…' }
const asTheme = json(themeRecord, theme)
const bodyExample = { product_name: 'Portal', colors: { light: { primary: '#0b6e4f' } } }

const bodyFailures = {
  unprocessable: [
    '"radius_px" must be at most 32.',
    {
      code: 'invalid_color',
      message:
        '"colors.light.primary" must be #rgb, #rrggbb, #rrggbbaa or oklch(lightness chroma hue).',
    },
    {
      code: 'invalid_font_family',
      message: '"font_family" must name 1 to 8 font families, divided by commas.',
    },
  ],
  unknown_field: '"logo" is not a known field.',
}
const contrastTooLow = {
  code: 'contrast_too_low',
  message:
    'In the light scheme "primary" on "background" has a contrast of 1.9, and 3 are needed. #767f00 would do.',
}

export const themeOperations = {
  show: operation({
    tag,
    summary: 'Read the theme',
    description: 'As JSON, as a style sheet that a portal may link to, or as design tokens.',
    query: themeQuery,
    headers: ifNoneMatchHeader,
    answers: {
      200: {
        description: 'The theme in the form that was asked for.',
        content: {
          'application/json': {
            schema: Type.Union([themeRecord, designTokensRecord]),
            example: theme,
          },
          'text/css': { schema: Type.String(), example: styleSheet(defaultTheme) },
        },
        headers: { etag },
      },
      304: { description: 'The caller has it.', headers: { etag } },
    },
    errors: { unprocessable: '"format" must be one of json, css, dtcg.' },
  }),
  replace: operation({
    tag,
    summary: 'Replace the theme',
    description: [
      'What is left out, or null, is as in the default theme. Colours are kept as hexadecimal ones;',
      'one that screens cannot show becomes the nearest of the same hue. Whether a theme is refused',
      'that is hard to read is configuration (`branding.enforce_contrast`). `if-match` takes the tag',
      'of the theme in any form, and does not mind another logo. The body may have 64 KiB.',
    ].join(' '),
    headers: ifMatchHeader,
    body: { content: json(themeBody, bodyExample) },
    answers: { 200: { description: 'The theme.', content: asTheme, headers: { etag } } },
    errors: {
      ...bodyFailures,
      unprocessable: [...bodyFailures.unprocessable, contrastTooLow],
      precondition_failed: 'The theme has changed since.',
    },
  }),
  preview: operation({
    tag,
    summary: 'Preview a theme',
    description: 'Tells what it would look like and how well it can be read. Nothing is saved.',
    body: { content: json(themeBody, bodyExample) },
    answers: {
      200: {
        description: 'The theme with all its values.',
        content: json(themePreview, {
          theme: renderTheme(defaultTheme),
          css_variables: cssVariables(defaultTheme),
          contrast: [
            {
              pair: 'light.primary/background',
              ratio: 1.9,
              required: 3,
              pass: false,
              suggestion: '#767f00',
            },
          ],
          warnings: [{ ...contrastTooLow, param: 'colors.light.primary' }],
        }),
      },
    },
    errors: bodyFailures,
  }),
  reset: operation({
    tag,
    summary: 'Go back to the default theme',
    headers: ifMatchHeader,
    body: { content: json(emptyBody, {}), isOptional: true },
    answers: { 200: { description: 'The default theme.', content: asTheme, headers: { etag } } },
    errors: {
      unknown_field: '"theme" is not a known field.',
      precondition_failed: 'The theme has changed since.',
    },
  }),
}
