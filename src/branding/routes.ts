import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import type { ThemeRecord } from './answer-schema.ts'
import type { Branding, ThemeView } from './branding.ts'

import { logoRoutes } from './logo/routes.ts'
import { themeOperations } from './operations.ts'
import { designTokens, renderPreview, renderTheme, styleSheet } from './render.ts'
import { parseFormat, parseTheme, requireEmptyBody, type ThemeFormat } from './schema.ts'

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
    userId: principal.userId,
    isExpected: readIfMatch(request.headers.get('if-match'), withoutSuffix),
  })
  const currentTag = async () => tagOf(await branding.theme(), 'json')
  return new Elysia({ name: 'branding', prefix: '/v1/branding' })
    .use(guard(auth))
    .get(
      '/theme',
      async ({ query, request: { headers } }) => {
        const format = parseFormat(query)
        const view = await branding.theme()
        const isUnchanged = isKnown(headers.get('if-none-match'), tagOf(view, format))
        return isUnchanged ? unchanged(view, format) : answer(view, format)
      },
      { requires: 'can_access_api', detail: themeOperations.show },
    )
    .put(
      '/theme',
      async ({ principal, request, set }) => {
        const { theme } = parseTheme(await readJsonBody(request, limits))
        const change = changeOf(principal, request)
        const view = await withCurrentTag(set, currentTag, () => branding.setTheme(theme, change))
        return answer(view, 'json')
      },
      { requires: 'can_edit_config', parse: 'none', detail: themeOperations.replace },
    )
    .post(
      '/theme/preview',
      async ({ request }) => renderPreview(parseTheme(await readJsonBody(request, limits))),
      { requires: 'can_edit_config', parse: 'none', detail: themeOperations.preview },
    )
    .post(
      '/theme/reset',
      async ({ principal, request, set }) => {
        requireEmptyBody(request.body === null ? {} : await readJsonBody(request, limits))
        const change = changeOf(principal, request)
        const view = await withCurrentTag(set, currentTag, () => branding.resetTheme(change))
        return answer(view, 'json')
      },
      { requires: 'can_edit_config', parse: 'none', detail: themeOperations.reset },
    )
    .use(logoRoutes({ auth, branding }))
}

function answer(view: ThemeView, format: ThemeFormat): Response {
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

function withoutSuffix(name: string): string {
  return name.replace(/-\w+$/, '')
}
