import { type CatalogueTexts, readCatalogueFile } from './config.ts'
import { type Texts, textsOf } from './texts.ts'

/** The portal's own texts. */
export type Catalogue = {
  /**
   * The text that an override replaces: in its language, a more general one (`zh-Hant` for
   * `zh-Hant-TW`), or any other. Undefined if the portal has no text of this key.
   */
  find(language: string, namespace: string, key: string): string | undefined
  /** All texts of one language, or of all. */
  texts(language: string | null): CatalogueTexts
}

export function openCatalogue(path: string): Catalogue {
  const all = readCatalogueFile(path)
  const languages = new Map(
    Object.entries(all).map(([language, namespaces]) => [language, textsOf(namespaces)]),
  )
  const anyLanguage = mergeLanguages([...languages.values()])
  return {
    find(language, namespace, key) {
      const subtags = language.split('-')
      for (let length = subtags.length; length > 0; length--) {
        const candidate = subtags.slice(0, length).join('-')
        const text = languages.get(candidate)?.get(namespace)?.get(key)
        if (text !== undefined) return text
      }
      return anyLanguage.get(namespace)?.get(key)
    },
    texts(language) {
      if (language === null) return all
      const texts = Object.hasOwn(all, language) ? all[language] : undefined
      return texts === undefined ? {} : { [language]: texts }
    },
  }
}

/** The first language with a text takes precedence. */
function mergeLanguages(languages: readonly Texts[]): Texts {
  const merged = new Map<string, Map<string, string>>()
  for (const [namespace, keys] of languages.flatMap((namespaces) => [...namespaces])) {
    merged.set(namespace, new Map([...keys, ...(merged.get(namespace) ?? [])]))
  }
  return merged
}

/**
 * Compares the placeholders and tags of an override, which a text must have in every language, with
 * those of the text it replaces; null: no difference.
 */
export function comparePlaceholders(original: string, text: string) {
  const [expected, actual] = [placeholdersOf(original), placeholdersOf(text)]
  const missing = [...expected].filter((placeholder) => !actual.has(placeholder))
  const unexpected = [...actual].filter((placeholder) => !expected.has(placeholder))
  return missing.length + unexpected.length === 0 ? null : { missing, unexpected }
}

/** `{{name}}`, `{{- name, format}}`, `{name}`. */
const value = /\{\{?-? *([\p{L}\p{N}_$.@-]+) *(?:,[^{}]*)?\}/gu
/** `{count, plural, one {…} other {…}}`: the branches differ by language. */
const choice = /\{ *([\p{L}\p{N}_$.@-]+) *, *(?:plural|select|selectordinal) *,/gu
const tag = /<(\/?)([\p{L}\p{N}][\p{L}\p{N}_.:-]*)[^<>]*>/gu

function placeholdersOf(text: string): ReadonlySet<string> {
  const choices = [...text.matchAll(choice)].map(([, name]) => `{${name}}`)
  const values = [...text.matchAll(value)].map(([, name]) => `{${name}}`)
  const tags = [...text.matchAll(tag)].map(([, slash, name]) => `<${slash}${name}>`)
  return new Set([...(choices.length > 0 ? choices : values), ...tags])
}
