import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import type { TranslationFinding, TranslationStatusRecord } from './answer-schema.ts'
import { readLanguage } from './language.ts'
import { translationOperations } from './operations.ts'
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
      { requires: 'can_access_api', detail: translationOperations.read },
    )
    .get('/status', async () => renderStatus(await translations.status()), {
      requires: 'can_edit_config',
      detail: translationOperations.status,
    })
    .post(
      '/reset',
      async ({ request, set }) => {
        const language = readReset(request.body === null ? {} : await readJsonBody(request, limits))
        const isExpected = readIfMatch(request.headers.get('if-match'))
        await withCurrentTag(
          set,
          () => translations.tagOf(language),
          () => translations.reset(language, isExpected),
        )
        return {}
      },
      { requires: 'can_edit_config', parse: 'none', detail: translationOperations.reset },
    )
    .patch(
      '/:language',
      async ({ principal, params, query, request, set }) => {
        const language = readLanguage(params.language)
        const isForced = readForce(query)
        const patch = readPatch(await readJsonBody(request, limits))
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const how = { by: principal.userId, isExpected, isForced }
        const patched = withCurrentTag(
          set,
          () => translations.tagOf(language),
          () => translations.patch(language, patch, how),
        )
        return answer(await patched)
      },
      { requires: 'can_edit_config', parse: 'none', detail: translationOperations.change },
    )
}

function answer({ json, tag }: Overrides): Response {
  const headers = { ...headersOf(tag), 'content-type': 'application/json' }
  return new Response(json, { headers })
}

function headersOf(tag: string) {
  return { etag: entityTag(tag), 'cache-control': 'private, no-cache' }
}

function renderStatus(status: TranslationStatus): TranslationStatusRecord {
  const { hasCatalogue, languages, findings, hasMore } = status
  return {
    catalogue: hasCatalogue,
    languages: languages.map(({ language, texts, isSupported, updatedAt, updatedBy }) => ({
      language,
      texts,
      supported: isSupported,
      updated_at: updatedAt.toISOString(),
      updated_by: updatedBy,
    })),
    findings: findings.map(renderFinding),
    has_more: hasMore,
  }
}

function renderFinding(finding: TranslationStatus['findings'][number]): TranslationFinding {
  if (finding.problem === 'key_vanished') return finding
  return { ...finding, missing: [...finding.missing], unexpected: [...finding.unexpected] }
}
