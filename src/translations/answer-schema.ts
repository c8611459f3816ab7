import { type Static, Type } from '@sinclair/typebox'
import { instant } from '#api/shapes.ts'

/** What `/v1/translations` answers with, and the body of a change. */

/** The JSON of these is put together from texts as they are stored. */
export const translationRecord = Type.Record(
  Type.String(),
  Type.Record(Type.String(), Type.Record(Type.String(), Type.String())),
  { $id: 'Translations', description: 'Language → namespace → key → text.' },
)

/** What `readPatch` takes, which has limits beside. */
export const translationPatch = Type.Record(
  Type.String(),
  Type.Union([Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])), Type.Null()]),
  {
    $id: 'TranslationPatch',
    description: 'Namespace → key → text; null takes a text, or a whole namespace, away.',
  },
)

const languageStatus = Type.Object({
  language: Type.String(),
  texts: Type.Integer({ description: 'How many there are.' }),
  supported: Type.Boolean({ description: 'Whether the language may still be changed.' }),
  updated_at: instant('When it was last changed'),
  updated_by: Type.String({ format: 'uuid', description: 'The user who did it.' }),
})

const place = { language: Type.String(), namespace: Type.String(), key: Type.String() }
const marks = (description: string) => Type.Array(Type.String(), { description })

const finding = Type.Union([
  Type.Object({
    ...place,
    problem: Type.Literal('key_vanished', {
      description: 'The portal has no such text any more, so this one is never shown.',
    }),
  }),
  Type.Object({
    ...place,
    problem: Type.Literal('placeholder_mismatch'),
    missing: marks("Placeholders and tags that the portal's own text has and this one lacks."),
    unexpected: marks("Those that the portal's own text has not."),
  }),
])
export type TranslationFinding = Static<typeof finding>

export const translationStatus = Type.Object(
  {
    catalogue: Type.Boolean({
      description: 'Whether the own texts of the portal are known; without them nothing is found.',
    }),
    languages: Type.Array(languageStatus),
    findings: Type.Array(finding, { description: 'The first 1,000.' }),
    has_more: Type.Boolean({ description: 'Whether there are more findings.' }),
  },
  { $id: 'TranslationStatus' },
)
export type TranslationStatusRecord = Static<typeof translationStatus>

export const nothing = Type.Object({}, { additionalProperties: false })
