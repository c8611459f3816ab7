import { readFileSync } from 'node:fs'
import { Type } from '@sinclair/typebox'
import { section, text } from '#config/keys.ts'
import { isRecord } from '#lib/json.ts'

/** The keys of translations. */
export const translationsKeys = {
  translations: section('Overrides of interface texts.', {
    languages: Type.Array(Type.String({ minLength: 1 }), {
      description: 'Languages that may be translated, as BCP 47 tags; empty: any.',
      default: [],
    }),
    catalogue: Type.Optional(
      text(
        'JSON file with the original texts (language → namespace → key → text), used to validate overrides.',
      ),
    ),
  }),
}

/** Rules of these keys beyond the schema. */
export function* translationsFaults({
  translations,
}: {
  translations: { languages: string[]; catalogue?: string }
}): Generator<string> {
  for (const [at, tag] of translations.languages.entries()) {
    if (!isLanguageTag(tag)) yield `translations.languages.${at}: "${tag}" is not a language tag.`
  }
  if (translations.catalogue === undefined) return
  try {
    readCatalogueFile(translations.catalogue)
  } catch (error) {
    yield `translations.catalogue: ${error instanceof Error ? error.message : error}`
  }
}

/** Language → namespace → key → text. */
export type CatalogueTexts = Readonly<Record<string, NamespaceTexts>>
type NamespaceTexts = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Throws an error with a message for the operator. */
export function readCatalogueFile(path: string): CatalogueTexts {
  const texts: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (!isTree(texts, isNamespaces)) {
    throw new Error(`${path} must contain texts as language → namespace → key → text.`)
  }
  return texts
}

function isNamespaces(value: unknown): value is NamespaceTexts {
  return isTree(value, (keys) => isTree(keys, (item) => typeof item === 'string'))
}

function isTree<T>(
  value: unknown,
  isBranch: (item: unknown) => item is T,
): value is Record<string, T> {
  return isRecord(value) && Object.values(value).every(isBranch)
}

function isLanguageTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}
