import { idExample, ifMatchHeader, ifNoneMatchHeader, instantExample } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { nothing, translationPatch, translationRecord, translationStatus } from './answer-schema.ts'
import { patchQuery, readQuery, resetBody } from './schema.ts'

const tag = 'Translations'
const etag = 'The tag of these texts.'
const german = { de: { navigation: { home: 'Startseite', greeting: 'Hallo, {{name}}!' } } }

const invalidLanguage = {
  code: 'invalid_language',
  message: 'A language must be a BCP 47 tag such as "de" or "pt-BR".',
}
const changedSince = 'The translations have changed since.'

export const translationOperations = {
  read: operation({
    tag,
    summary: 'Read the changed texts',
    description: "Those that stand in place of the portal's own, in canonical order.",
    query: readQuery,
    headers: ifNoneMatchHeader,
    answers: {
      200: {
        description: 'All changed texts, or those of one language.',
        content: json(translationRecord, german),
        headers: { etag },
      },
      304: { description: 'The caller has them.', headers: { etag } },
    },
    errors: { unprocessable: invalidLanguage },
  }),
  status: operation({
    tag,
    summary: 'Check the changed texts',
    description:
      'Which of them the portal has no use for, or wants with other placeholders. For a look after the portal was renewed.',
    answers: {
      200: {
        description: 'Languages, and what was found.',
        content: json(translationStatus, {
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
        }),
      },
    },
  }),
  reset: operation({
    tag,
    summary: 'Forget the changed texts',
    description:
      'The portal shows its own again. The body may be left out, which means all languages.',
    headers: ifMatchHeader,
    body: { content: json(resetBody, { language: 'de' }), isOptional: true },
    answers: { 200: { description: 'They are forgotten.', content: json(nothing, {}) } },
    errors: {
      unprocessable: invalidLanguage,
      unknown_field: '"languages" is not a known field.',
      precondition_failed: changedSince,
    },
  }),
  change: operation({
    tag,
    summary: 'Change texts of a language',
    description: [
      'A merge patch: what is left out stays, and null takes a text or a namespace away. All of it is',
      'done or nothing. A key has 500 characters at most and a text 4,096 bytes; a language has 10,000',
      'texts, there are 200 languages, and all of them together have 16 MiB. The body may have 1 MiB.',
      "A text needs the placeholders and tags of the portal's own, where that is known. `if-match`",
      'takes the tag of the language or that of all.',
    ].join(' '),
    path: { language: 'A BCP 47 tag.' },
    query: patchQuery,
    headers: ifMatchHeader,
    body: { content: json(translationPatch, { navigation: { home: 'Startseite', away: null } }) },
    answers: {
      200: {
        description: 'All changed texts of the language.',
        content: json(translationRecord, german),
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
          message: '"navigation.greeting" lacks {name}; with ?force=true it is taken all the same.',
        },
        { code: 'forbidden_name', message: '"__proto__" may not be the name of a key.' },
        { code: 'text_too_long', message: '"navigation.home" must have at most 4096 bytes.' },
        { code: 'too_many_keys', message: 'A language has at most 10000 texts.' },
        { code: 'too_many_languages', message: 'There are 200 languages already.' },
        { code: 'too_much_text', message: 'All translations have at most 16777216 bytes.' },
      ],
      precondition_failed: changedSince,
    },
  }),
}
