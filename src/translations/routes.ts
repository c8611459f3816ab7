import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { entityTag, isKnown, readIfMatch } from '#http/entity-tag.ts'
import { readLanguage } from './language.ts'
import { readAsked, readForce, readPatch, readReset } from './schema.ts'
import type { TranslationStatus } from './status.ts'
import type { Overrides, Translations } from './translations.ts'

export type TranslationRoutesDeps = {
  auth: Auth
  translations: Translations
  config: Pick<Config, 'limits'>
}

const bodyBytesMax = 1_048_576

/** Texts of the portal in other words: everybody reads them, administrators write them. */
export function translationRoutes({ auth, translations, config }: TranslationRoutesDeps) {
  const limits = {
    ...config.limits,
    requestBytesMax: Math.min(config.limits.requestBytesMax, bodyBytesMax),
  }
  return new Elysia({ name: 'translations', prefix: '/v1/translations' })
    .use(guard(auth))
    .get(
      '/',
      async ({ query, request: { headers } }) => {
        const language = readAsked(query)
        const known = headers.get('if-none-match')
        if (known !== null) {
          const tag = await translations.tagOf(language)
          if (isKnown(known, tag)) {
            return new Response(null, { status: 304, headers: headersOf(tag) })
          }
        }
        return answer(await translations.read(language))
      },
      route('can_access_api', 'Read the texts that administrators have changed'),
    )
    .get(
      '/status',
      async () => renderStatus(await translations.status()),
      route(
        'can_edit_config',
        'Tell which changed texts the portal has no use for, or wants with other placeholders',
      ),
    )
    .post(
      '/reset',
      async ({ request }) => {
        const body = request.body === null ? {} : await readJsonBody(request, limits)
        await translations.reset(readReset(body), readIfMatch(request.headers.get('if-match')))
        return {}
      },
      {
        ...route('can_edit_config', 'Forget all changed texts, of one language or of all'),
        parse: 'none',
      },
    )
    .patch(
      '/:language',
      async ({ principal, params, query, request }) => {
        const language = readLanguage(params.language)
        const isForced = readForce(query)
        const patch = readPatch(await readJsonBody(request, limits))
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const how = { by: principal.userId, isExpected, isForced }
        return answer(await translations.patch(language, patch, how))
      },
      {
        ...route('can_edit_config', 'Change texts of one language; null takes one away'),
        parse: 'none',
      },
    )
}

function route<Name extends Permission>(requires: Name, summary: string) {
  return { requires, detail: { tags: ['Translations'], summary } }
}

function answer({ json, tag }: Overrides): Response {
  const headers = { ...headersOf(tag), 'content-type': 'application/json' }
  return new Response(json, { headers })
}

function headersOf(tag: string) {
  return { etag: entityTag(tag), 'cache-control': 'private, no-cache' }
}

function renderStatus({ hasCatalogue, languages, findings, hasMore }: TranslationStatus) {
  return {
    catalogue: hasCatalogue,
    languages: languages.map(({ language, texts, isSupported, updatedAt, updatedBy }) => ({
      ...{ language, texts },
      supported: isSupported,
      updated_at: updatedAt.toISOString(),
      updated_by: updatedBy,
    })),
    findings,
    has_more: hasMore,
  }
}
