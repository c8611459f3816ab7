import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { idExample, ifMatchHeader, ifNoneMatchHeader, instantExample } from '#api/shapes.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import {
  emptyRecord,
  languageQuery,
  parseLanguage,
  parsePatch,
  parseReset,
  patchQuery,
  resetBody,
  translationPatch,
  translationRecord,
  translationStatus,
} from './schema.ts'
import type { Overrides, Translations } from './store.ts'

const bodyBytesMax = 1_048_576

/** Overrides of the portal's texts: every user reads them, administrators write them. */
export function translationEndpoints({ translations }: { translations: Translations }): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/translations',
      permission: 'can_access_api',
      tag: 'Translations',
      summary: 'List translation overrides',
      description: "Texts that replace the portal's own, in canonical order.",
      query: languageQuery,
      headers: ifNoneMatchHeader,
      responses: {
        200: {
          description: 'All overrides, or those of one language.',
          content: json(translationRecord, overridesExample),
          headers: { etag },
        },
        304: { description: 'The overrides have not changed.', headers: { etag } },
      },
      errors: { unprocessable: invalidLanguage },
      async handle({ query: language, request: { headers } }) {
        const ifNoneMatch = headers.get('if-none-match')
        if (ifNoneMatch !== null) {
          const tag = await translations.tagOf(language)
          if (isKnown(ifNoneMatch, tag)) {
            return new Response(null, { status: 304, headers: headersOf(tag) })
          }
        }
        return overridesResponse(await translations.read(language))
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/translations/catalogue',
      permission: 'can_edit_config',
      tag: 'Translations',
      summary: "List the portal's own texts",
      description:
        'The texts of `translations.catalogue`, which overrides replace; empty if it is not configured.',
      query: languageQuery,
      responses: {
        200: {
          description: 'All texts, or those of one language.',
          content: json(translationRecord, overridesExample),
        },
      },
      errors: { unprocessable: invalidLanguage },
      handle: ({ query: language }) => translations.originals(language),
    }),

    endpoint({
      method: 'GET',
      path: '/v1/translations/status',
      permission: 'can_edit_config',
      tag: 'Translations',
      summary: 'Check translation overrides',
      description:
        'Finds overrides that the portal no longer uses, and overrides with other placeholders. Useful after an update of the portal.',
      responses: {
        200: {
          description: 'Languages and findings.',
          content: json(translationStatus, statusExample),
        },
      },
      handle: () => translations.status(),
    }),

    endpoint({
      method: 'POST',
      path: '/v1/translations/reset',
      permission: 'can_edit_config',
      tag: 'Translations',
      summary: 'Delete translation overrides',
      description: 'The portal shows its own texts again. Without a body, all languages are reset.',
      headers: ifMatchHeader,
      body: jsonBody(resetBody, {
        example: { language: 'de' },
        isOptional: true,
        bytesMax: bodyBytesMax,
        read: parseReset,
      }),
      responses: {
        200: { description: 'The overrides are deleted.', content: json(emptyRecord, {}) },
      },
      errors: {
        unprocessable: invalidLanguage,
        unknown_field: '"languages" is not a known field.',
        precondition_failed: changed,
      },
      async handle({ body, context, request }) {
        const principal = actingPrincipal(context)
        const isExpected = readIfMatch(request.headers.get('if-match'))
        await translations.reset(body ?? null, { principal, isExpected })
        return {}
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/v1/translations/:language',
      permission: 'can_edit_config',
      tag: 'Translations',
      summary: 'Update the overrides of a language',
      description: `A merge patch: omitted texts are kept, and null removes a text or a namespace. The patch is applied
completely or not at all. Limits: 500 characters per key, 4,096 bytes per text, 10,000 texts per language, 200 languages,
16 MiB in total, and 1 MiB per body. A text must have the placeholders and tags of the portal's own text, if that is known.
\`if-match\` takes the tag of the language or of all languages.`,
      params: { language: 'A BCP 47 tag.' },
      query: patchQuery,
      headers: ifMatchHeader,
      body: jsonBody(translationPatch, {
        example: { navigation: { home: 'Startseite', away: null } },
        bytesMax: bodyBytesMax,
        read: parsePatch,
      }),
      responses: {
        200: {
          description: 'All overrides of the language.',
          content: json(translationRecord, overridesExample),
          headers: { etag },
        },
      },
      errors: {
        unprocessable: [
          '"navigation.home" must be a text or null.',
          invalidLanguage,
          {
            code: 'language_not_supported',
            message: '"sk" is not among the languages of this portal: de, en.',
          },
          {
            code: 'placeholder_mismatch',
            message: '"navigation.greeting" lacks {name}; use ?force=true to store it anyway.',
          },
          { code: 'forbidden_name', message: '"__proto__" may not be the name of a key.' },
          { code: 'text_too_long', message: '"navigation.home" must have at most 4096 bytes.' },
          { code: 'too_many_keys', message: 'A language may have at most 10000 texts.' },
          { code: 'too_many_languages', message: 'The limit of 200 languages is reached.' },
          { code: 'too_much_text', message: 'All translations may have at most 16777216 bytes.' },
        ],
        precondition_failed: changed,
      },
      async handle({ params, query, body, context, request }) {
        const options = {
          principal: actingPrincipal(context),
          isExpected: readIfMatch(request.headers.get('if-match')),
          isForced: query.force,
        }
        const language = parseLanguage(params.language)
        return overridesResponse(await translations.patch(language, body, options))
      },
    }),
  ]
}

function overridesResponse({ json, tag }: Overrides): Response {
  return new Response(json, { headers: { ...headersOf(tag), 'content-type': 'application/json' } })
}

function headersOf(tag: string) {
  return { etag: entityTag(tag), 'cache-control': 'private, no-cache' }
}

const etag = 'The tag of these texts.'
const overridesExample = {
  de: { navigation: { home: 'Startseite', greeting: 'Hallo, {{name}}!' } },
}
const changed = 'The translations have changed.'
const invalidLanguage = {
  code: 'invalid_language',
  message: 'A language must be a BCP 47 tag such as "de" or "pt-BR".',
}
const statusExample = {
  catalogue: true,
  languages: [
    {
      language: 'de',
      texts: 2,
      supported: true,
      updated_at: instantExample,
      updated_by: idExample,
    },
  ],
  findings: [
    {
      language: 'de',
      namespace: 'navigation',
      key: 'greeting',
      problem: 'placeholder_mismatch',
      missing: ['{name}'],
      unexpected: [],
    },
  ],
  has_more: false,
}
