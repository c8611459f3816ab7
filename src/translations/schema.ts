import { type Static, Type } from '@sinclair/typebox'
import { instant } from '#api/shapes.ts'
import { isRecord } from '#lib/json.ts'
import { compileChecker, shortenPath } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'

/** The response is assembled from texts as they are stored. */
export const translationRecord = Type.Record(
  Type.String(),
  Type.Record(Type.String(), Type.Record(Type.String(), Type.String())),
  { $id: 'Translations', description: 'Language → namespace → key → text.' },
)

const languageStatus = Type.Object({
  language: Type.String(),
  texts: Type.Integer({ description: 'The number of overrides.' }),
  supported: Type.Boolean({ description: 'Whether the configuration allows changes.' }),
  updated_at: instant('Time of the last change'),
  updated_by: Type.String({ format: 'uuid', description: 'The user who made it.' }),
})

const textLocation = { language: Type.String(), namespace: Type.String(), key: Type.String() }

const finding = Type.Union([
  Type.Object(
    {
      ...textLocation,
      problem: Type.Literal('key_vanished', {
        description: 'The portal has no text of this key, so the override is never shown.',
      }),
    },
    { $id: 'VanishedKey' },
  ),
  Type.Object(
    {
      ...textLocation,
      problem: Type.Literal('placeholder_mismatch'),
      missing: Type.Array(Type.String(), {
        description: "Placeholders and tags of the portal's text that the override lacks.",
      }),
      unexpected: Type.Array(Type.String(), {
        description: "Placeholders and tags that the portal's text does not have.",
      }),
    },
    { $id: 'PlaceholderMismatch' },
  ),
])
export type TranslationFinding = Static<typeof finding>

export const translationStatus = Type.Object(
  {
    catalogue: Type.Boolean({
      description:
        "Whether the portal's own texts are configured; without them nothing is checked.",
    }),
    languages: Type.Array(languageStatus),
    findings: Type.Array(finding, { description: 'The first 1,000.' }),
    has_more: Type.Boolean({ description: 'Whether there are more findings.' }),
  },
  { $id: 'TranslationStatus' },
)
export type TranslationStatus = Static<typeof translationStatus>

export const emptyRecord = Type.Object({}, { additionalProperties: false })

/** Documents the body of a change; `parsePatch` validates it. */
export const translationPatch = Type.Record(
  Type.String(),
  Type.Union([Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])), Type.Null()]),
  {
    $id: 'TranslationPatch',
    description: 'Namespace → key → text; null removes a text or a whole namespace.',
  },
)

/** Namespace → key → text; null removes a text or a whole namespace. */
export type TextsPatch = ReadonlyMap<string, ReadonlyMap<string, string | null> | null>

const namespaceCharsMax = 100
/** Some portals use the English sentence as the key. */
const keyCharsMax = 500
const textBytesMax = 4_096

/** Assigning under these names would change an object's prototype in some clients. */
const forbiddenNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

export function parsePatch(body: unknown): TextsPatch {
  if (!isRecord(body)) throw refused('', 'The body must be an object: namespace → key → text.')
  return new Map(
    Object.entries(body).map(([namespace, keys]) => {
      validateName(namespace, 'namespace', { path: '', charsMax: namespaceCharsMax })
      return [namespace, keys === null ? null : parseKeys(keys, namespace)]
    }),
  )
}

function parseKeys(keys: unknown, namespace: string): ReadonlyMap<string, string | null> {
  if (!isRecord(keys)) throw refused(namespace, `"${namespace}" must be an object: key → text.`)
  return new Map(
    Object.entries(keys).map(([key, text]) => {
      validateName(key, 'key', { path: namespace, charsMax: keyCharsMax })
      return [key, text === null ? null : parseText(text, `${namespace}.${key}`)]
    }),
  )
}

function validateName(
  name: string,
  kind: 'namespace' | 'key',
  { path, charsMax }: { path: string; charsMax: number },
): void {
  const within = path === '' ? '' : ` of "${shortenPath(path)}"`
  if (name.length === 0 || name.length > charsMax) {
    throw refused(path, `A ${kind}${within} must have 1 to ${charsMax} characters.`)
  }
  if (/\p{Cc}/u.test(name) || !name.isWellFormed()) {
    throw refused(path, `A ${kind}${within} must be plain text on one line.`)
  }
  // Portals split names at dots and colons into paths of nested objects.
  const forbidden = name.split(/[.:]/).find((step) => forbiddenNames.has(step))
  if (forbidden === undefined) return
  const param = path === '' ? name : `${path}.${name}`
  throw refused(param, `"${forbidden}" may not be the name of a ${kind}.`, 'forbidden_name')
}

function parseText(text: unknown, param: string): string {
  if (typeof text !== 'string') throw refused(param, `"${param}" must be a text or null.`)
  if (Buffer.byteLength(text) > textBytesMax) {
    throw refused(param, `"${param}" must have at most ${textBytesMax} bytes.`, 'text_too_long')
  }
  if (text.includes('\0') || !text.isWellFormed()) {
    throw refused(param, `"${param}" must be well-formed text without NUL.`)
  }
  return text
}

const languageTag = (description: string) => Type.Optional(Type.String({ description }))

export const resetBody = Type.Object(
  { language: languageTag('The BCP 47 tag of the language to reset; by default all.') },
  { additionalProperties: false },
)
const resetChecker = compileChecker(resetBody)

/** The language to reset; null: all. A null in the body is refused, since it may be a mistake. */
export function parseReset(body: unknown): string | null {
  if (!resetChecker.check(body)) throw refusedBySchema(resetChecker.firstError(body))
  return body.language === undefined ? null : parseLanguage(body.language)
}

/** The language to list; null: all. */
export const languageQuery = {
  schema: Type.Object({
    language: languageTag('The BCP 47 tag of the language to list; by default all.'),
  }),
  read(params: URLSearchParams): string | null {
    const language = params.getAll('language').at(-1)
    return language === undefined ? null : parseLanguage(language)
  },
}

export const patchQuery = Type.Object({
  force: Type.Boolean({
    description: "Stores texts whose placeholders differ from those of the portal's own texts.",
    default: false,
  }),
})

/** Longer than any tag in use. */
const languageCharsMax = 64

/** Returns the canonical form of a BCP 47 tag; throws an `AppError` of code `invalid_language`. */
export function parseLanguage(tag: string): string {
  try {
    const [language] = tag.length > languageCharsMax ? [] : Intl.getCanonicalLocales(tag)
    if (language !== undefined) return language
  } catch {
    // Malformed.
  }
  const sentence = 'A language must be a BCP 47 tag such as "de" or "pt-BR".'
  throw refused('language', sentence, 'invalid_language')
}
