import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { ifMatchHeader, ifNoneMatchHeader } from '#api/shapes.ts'
import type { Auth } from '#auth/auth.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import { actingPrincipal, type RequestContext } from '#lib/request-context.ts'
import { logoEndpoints } from './logo/endpoints.ts'
import {
  cssVariables,
  designTokens,
  designTokensRecord,
  renderPreview,
  renderTheme,
  styleSheet,
  type ThemeRecord,
  themePreview,
  themeRecord,
} from './record.ts'
import { emptyBody, parseTheme, type ThemeFormat, themeBody, themeQuery } from './schema.ts'
import { type Branding, type ThemeView, themeTag } from './store.ts'
import { defaultTheme } from './theme.ts'

export type BrandingEndpointsDeps = { auth: Pick<Auth, 'authenticate'>; branding: Branding }

const bodyBytesMax = 65_536

/** The look of the portal: every user reads it, administrators change it. */
export function brandingEndpoints({ auth, branding }: BrandingEndpointsDeps): Endpoint[] {
  const changeBy = (context: RequestContext, request: Request) => ({
    principal: actingPrincipal(context),
    isExpected: readIfMatch(request.headers.get('if-match'), withoutSuffix),
  })
  return [
    endpoint({
      method: 'GET',
      path: '/v1/branding/theme',
      permission: 'can_access_api',
      tag: 'Branding',
      summary: 'Retrieve the theme',
      description: 'As JSON, as a style sheet that a portal can link to, or as design tokens.',
      query: themeQuery,
      headers: ifNoneMatchHeader,
      responses: {
        200: {
          description: 'The theme in the requested format.',
          content: {
            'application/json': {
              schema: Type.Union([themeRecord, designTokensRecord]),
              example: themeExample,
            },
            'text/css': { schema: Type.String(), example: styleSheet(defaultTheme) },
          },
          headers: { etag },
        },
        304: { description: 'The theme has not changed.', headers: { etag } },
      },
      errors: { unprocessable: '"format" must be "json" or "css" or "dtcg".' },
      async handle({ query: { format }, request: { headers } }) {
        const view = await branding.theme()
        if (isKnown(headers.get('if-none-match'), themeTag(view, format))) {
          return new Response(null, { status: 304, headers: headersOf(view, format) })
        }
        return themeResponse(view, format)
      },
    }),

    endpoint({
      method: 'PUT',
      path: '/v1/branding/theme',
      permission: 'can_edit_config',
      tag: 'Branding',
      summary: 'Replace the theme',
      description: `Omitted and null fields have the value of the default theme. Colours are stored in hexadecimal
form; a colour outside the sRGB gamut becomes the nearest one of the same hue. Whether a theme with low contrast is refused
is configuration (\`branding.enforce_contrast\`). \`if-match\` takes the tag of the theme in any format; a change of
the logo does not invalidate it. The body may have 64 KiB.`,
      headers: ifMatchHeader,
      body: jsonBody(themeBody, {
        example: bodyExample,
        bytesMax: bodyBytesMax,
        read: parseTheme,
      }),
      responses: { 200: themeDeclaration('The theme.') },
      errors: {
        unknown_field: unknownField,
        unprocessable: [...invalidFields, contrastTooLow],
        precondition_failed: themeChanged,
      },
      async handle({ body, context, request }) {
        const change = changeBy(context, request)
        return themeResponse(await branding.setTheme(body.theme, change), 'json')
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/branding/theme/preview',
      permission: 'can_edit_config',
      tag: 'Branding',
      summary: 'Preview a theme',
      description: 'Returns the complete theme and its contrast. Nothing is saved.',
      body: jsonBody(themeBody, {
        example: bodyExample,
        bytesMax: bodyBytesMax,
        read: parseTheme,
      }),
      responses: {
        200: {
          description: 'The theme with all its values.',
          content: json(themePreview, previewExample),
        },
      },
      errors: { unknown_field: unknownField, unprocessable: invalidFields },
      handle: ({ body }) => renderPreview(body),
    }),

    endpoint({
      method: 'POST',
      path: '/v1/branding/theme/reset',
      permission: 'can_edit_config',
      tag: 'Branding',
      summary: 'Restore the default theme',
      headers: ifMatchHeader,
      body: jsonBody(emptyBody, { example: {}, isOptional: true, bytesMax: bodyBytesMax }),
      responses: { 200: themeDeclaration('The default theme.') },
      errors: {
        unknown_field: '"theme" is not a known field.',
        precondition_failed: themeChanged,
      },
      async handle({ context, request }) {
        const change = changeBy(context, request)
        return themeResponse(await branding.resetTheme(change), 'json')
      },
    }),

    ...logoEndpoints({ auth, branding }),
  ]
}

function themeResponse(view: ThemeView, format: ThemeFormat): Response {
  const headers = headersOf(view, format)
  switch (format) {
    case 'json': {
      const body: ThemeRecord = { ...renderTheme(view.theme), logo_url: view.logoUrl }
      return Response.json(body, { headers })
    }
    case 'css':
      return new Response(styleSheet(view.theme), {
        headers: { ...headers, 'content-type': 'text/css; charset=utf-8' },
      })
    case 'dtcg':
      return Response.json(designTokens(view.theme), { headers })
  }
}

function headersOf(view: ThemeView, format: ThemeFormat) {
  return {
    etag: entityTag(themeTag(view, format)),
    'cache-control': 'private, no-cache',
    'x-content-type-options': 'nosniff',
  }
}

function withoutSuffix(tag: string): string {
  return tag.replace(/-\w+$/, '')
}

const etag = 'The tag of the theme and its logo.'
const themeChanged = 'The theme has changed.'
const unknownField = '"logo" is not a known field.'
const themeExample = {
  ...renderTheme(defaultTheme),
  logo_url: '/v1/branding/logo?v=0d5f1b7c93ae&sig=…',
}
const themeDeclaration = (description: string) => ({
  description,
  content: json(themeRecord, themeExample),
  headers: { etag },
})
const bodyExample = { product_name: 'Portal', colors: { light: { primary: '#0b6e4f' } } }
const invalidFields = [
  '"radius_px" must be at most 32.',
  {
    code: 'invalid_color',
    message:
      '"colors.light.primary" must be #rgb, #rrggbb, #rrggbbaa or oklch(lightness chroma hue).',
  },
  {
    code: 'invalid_font_family',
    message: '"font_family" must name 1 to 8 font families, separated by commas.',
  },
] as const
const contrastTooLow = {
  code: 'contrast_too_low',
  message:
    'In the light scheme, "primary" on "background" has a contrast of 1.9; at least 3 is required. #767f00 would pass.',
}
const previewExample = {
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
}
