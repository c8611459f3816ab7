import { Type } from '@sinclair/typebox'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { type Checker, compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import { readLanguage } from './language.ts'

/** The wire shapes of `/v1/translations`. */

/** Namespace → key → text; null takes a text, or a whole namespace, away. */
export type TextsPatch = ReadonlyMap<string, ReadonlyMap<string, string | null> | null>

const namespaceCharsMax = 100
/** Some portals take the English sentence for the key. */
const keyCharsMax = 500
const valueBytesMax = 4_096

/** What JavaScript takes for an object's own machinery, were it ever assigned under such a name. */
const forbiddenNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

export function readPatch(body: unknown): TextsPatch {
  if (!isRecord(body)) throw refused('', 'The body must be an object: namespace → key → text.')
  return new Map(
    Object.entries(body).map(([namespace, keys]) => {
      checkName(namespace, 'namespace', { path: '', charsMax: namespaceCharsMax })
      return [namespace, keys === null ? null : readKeys(keys, namespace)]
    }),
  )
}

function readKeys(keys: unknown, namespace: string): ReadonlyMap<string, string | null> {
  if (!isRecord(keys)) {
    throw refused(namespace, `"${namespace}" must be an object: key → text.`)
  }
  return new Map(
    Object.entries(keys).map(([key, text]) => {
      checkName(key, 'key', { path: namespace, charsMax: keyCharsMax })
      return [key, text === null ? null : readText(text, `${namespace}.${key}`)]
    }),
  )
}

function checkName(
  name: string,
  what: 'namespace' | 'key',
  { path, charsMax }: { path: string; charsMax: number },
): void {
  if (name.length === 0 || name.length > charsMax) {
    throw refused(path, `A ${what} must have 1 to ${charsMax} characters.`)
  }
  if (/\p{Cc}/u.test(name) || !name.isWellFormed()) {
    throw refused(path, `A ${what} must be plain text on one line.`)
  }
  // Portals take dots and colons for steps into an object.
  const forbidden = name.split(/[.:]/).find((step) => forbiddenNames.has(step))
  if (forbidden === undefined) return
  const param = path === '' ? name : `${path}.${name}`
  throw refused(param, `"${forbidden}" may not be the name of a ${what}.`, 'forbidden_name')
}

function readText(text: unknown, param: string): string {
  if (typeof text !== 'string') throw refused(param, `"${param}" must be a text or null.`)
  if (Buffer.byteLength(text) > valueBytesMax) {
    throw refused(param, `"${param}" must have at most ${valueBytesMax} bytes.`, 'text_too_long')
  }
  if (text.includes('\0') || !text.isWellFormed()) {
    throw refused(param, `"${param}" must be text without NUL and without halves of characters.`)
  }
  return text
}

const languageTag = (description: string) => Type.Optional(Type.String({ description }))

export const resetBody = Type.Object(
  { language: languageTag('The BCP 47 tag of the one to forget; absent: all.') },
  { additionalProperties: false },
)
export const readQuery = Type.Object({
  language: languageTag('The BCP 47 tag of the one to show; absent: all.'),
})
export const patchQuery = Type.Object({
  force: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      description: "Takes texts whose placeholders differ from those of the portal's own.",
      default: 'false',
    }),
  ),
})
const resetChecker = compileChecker(resetBody)
const readChecker = compileChecker(readQuery)
const patchChecker = compileChecker(patchQuery)

/** The language to forget; null: all of them. A null in its place is too close to a mistake. */
export function readReset(body: unknown): string | null {
  const { language } = readFields(resetChecker, body)
  return language === undefined ? null : readLanguage(language)
}

/** The language to show; null: all of them. */
export function readAsked(query: unknown): string | null {
  const { language } = readFields(readChecker, query)
  return language === undefined ? null : readLanguage(language)
}

export function readForce(query: unknown): boolean {
  return readFields(patchChecker, query).force === 'true'
}

function readFields<T extends JsonObject>(
  checker: Pick<Checker<never>, 'firstError'> & { check(value: unknown): value is T },
  value: unknown,
): T {
  if (checker.check(value)) return value
  throw refusedBySchema(checker.firstError(value))
}
