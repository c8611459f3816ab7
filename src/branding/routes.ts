import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { entityTag, isKnown, readIfMatch } from '#http/entity-tag.ts'
import { type Branding, describe, pathOf, type ThemeView } from './branding.ts'
import { contrastOf } from './colors/contrast.ts'
import { designTokens } from './design-tokens.ts'
import { logoRoutes } from './logo/routes.ts'
import { type ReadTheme, readFormat, readNothing, readTheme, type ThemeFormat } from './schema.ts'
import { cssVariables, styleSheet } from './style-sheet.ts'
import { renderTheme } from './theme.ts'

export type BrandingRoutesDeps = {
  auth: Auth
  branding: Branding
  config: Pick<Config, 'limits'>
}

const bodyBytesMax = 65_536

/** How the portal looks: everybody reads it, administrators change it. */
export function brandingRoutes({ auth, branding, config }: BrandingRoutesDeps) {
  const limits = {
    ...config.limits,
    requestBytesMax: Math.min(config.limits.requestBytesMax, bodyBytesMax),
  }
  const changeOf = (principal: { userId: string }, request: Request) => ({
    by: principal.userId,
    isExpected: readIfMatch(withoutSuffixes(request.headers.get('if-match'))),
  })
  return new Elysia({ name: 'branding', prefix: '/v1/branding' })
    .use(guard(auth))
    .get(
      '/theme',
      async ({ query, request: { headers } }) => {
        const format = readFormat(query)
        const view = await branding.theme()
        const isUnchanged = isKnown(headers.get('if-none-match'), tagOf(view, format))
        return isUnchanged ? unchanged(view, format) : answer(view, format)
      },
      route('can_access_api', 'Read the theme, as JSON, as a style sheet or as design tokens'),
    )
    .put(
      '/theme',
      async ({ principal, request }) => {
        const { theme } = readTheme(await readJsonBody(request, limits))
        return answer(await branding.setTheme(theme, changeOf(principal, request)), 'json')
      },
      { ...route('can_edit_config', 'Replace the theme'), parse: 'none' },
    )
    .post(
      '/theme/preview',
      async ({ request }) => renderPreview(readTheme(await readJsonBody(request, limits))),
      {
        ...route('can_edit_config', 'Tell what a theme would look like; nothing is saved'),
        parse: 'none',
      },
    )
    .post(
      '/theme/reset',
      async ({ principal, request }) => {
        readNothing(request.body === null ? {} : await readJsonBody(request, limits))
        return answer(await branding.resetTheme(changeOf(principal, request)), 'json')
      },
      { ...route('can_edit_config', 'Go back to the default theme'), parse: 'none' },
    )
    .use(logoRoutes({ auth, branding }))
}

function route<Name extends Permission>(requires: Name, summary: string) {
  return { requires, detail: { tags: ['Branding'], summary } }
}

function answer(view: ThemeView, format: ThemeFormat): Response {
  const headers = headersOf(view, format)
  switch (format) {
    case 'json': {
      const body = { ...renderTheme(view.theme), logo_url: view.logoUrl }
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

function unchanged(view: ThemeView, format: ThemeFormat): Response {
  return new Response(null, { status: 304, headers: headersOf(view, format) })
}

function headersOf(view: ThemeView, format: ThemeFormat) {
  return {
    etag: entityTag(tagOf(view, format)),
    'cache-control': 'private, no-cache',
    'x-content-type-options': 'nosniff',
  }
}

const suffixChars = 12

/**
 * Behind a dash stands what tells the forms of one theme apart; the JSON names the logo as well. A
 * change is meant for a theme in whichever form it was read, and whatever became of the logo.
 */
function tagOf({ tag, logoUrl }: ThemeView, format: ThemeFormat): string {
  if (format !== 'json') return `${tag}-${format}`
  const logo = new Bun.CryptoHasher('sha256').update(logoUrl).digest('hex')
  return `${tag}-${logo.slice(0, suffixChars)}`
}

function withoutSuffixes(ifMatch: string | null): string | null {
  return ifMatch?.replaceAll(/-\w+(?=")/g, '') ?? null
}

function renderPreview({ theme, reduced }: ReadTheme) {
  const pairs = contrastOf(theme)
  const dull = pairs.filter(({ passes }) => !passes)
  return {
    theme: renderTheme(theme),
    css_variables: cssVariables(theme),
    contrast: pairs.map(({ scheme, foreground, background, ratio, required, ...rest }) => ({
      pair: `${scheme}.${foreground}/${background}`,
      ...{ ratio, required },
      pass: rest.passes,
      suggestion: rest.suggestion,
    })),
    warnings: [
      ...dull.map((pair) => ({
        code: 'contrast_too_low',
        param: pathOf(pair),
        message: describe(pair),
      })),
      ...reduced.map((param) => ({
        code: 'color_out_of_gamut',
        param,
        message: `Screens cannot show "${param}"; the nearest colour of the same hue is taken.`,
      })),
    ],
  }
}
